# Shared by demo.sh and test.sh: packages, CUDA, build. Source it from the repository's root.
# Needs nothing but a Debian 12 or Ubuntu 24.04 system (or newer) with apt-get.

say() { printf '\033[1m==>\033[0m %s\n' "$*" >&2; }
die() { printf 'error: %s\n' "$*" >&2; exit 3; }

ASSAY_PACKAGES=(
  g++ cmake ninja-build pkg-config git ca-certificates
  bubblewrap libseccomp-dev
  nlohmann-json3-dev libcli11-dev libfmt-dev libcurl4-openssl-dev libssl-dev libsqlite3-dev libzstd-dev
  libgtest-dev libgmock-dev libbenchmark-dev libcpp-httplib-dev
)
# Tests of pages look at them in a browser. Where none can be had, these tests say so and do not run.
ASSAY_PAGE_PACKAGES=(chromium)

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

# Installs those of the named packages that are missing, and says which.
install_packages() {
  local missing=() package
  for package in "$@"; do
    [ "$(dpkg-query -W -f='${db:Status-Abbrev}' "$package" 2>/dev/null | cut -c1-2)" = "ii" ] || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return
  command -v apt-get >/dev/null || die "these packages are missing and there is no apt-get: ${missing[*]}"
  say "installing from the distribution: ${missing[*]}"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq >/dev/null
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null \
    || die "apt-get could not install: ${missing[*]}"
}

# Prints the root of a CUDA Toolkit with NVRTC and its headers, or nothing. Finding none is no failure: callers run under set -e.
# ASSAY_HIDE_CUDA=1 finds none, so that a machine with a toolkit can try what one without it does.
find_toolkit() {
  local root nvcc
  [ -n "${ASSAY_HIDE_CUDA:-}" ] && return 0
  nvcc=$(command -v nvcc || true)
  for root in "${CUDA_HOME:-}" /usr/local/cuda ${nvcc:+"$(dirname "$(dirname "$(readlink -f "$nvcc")")")"}; do
    [ -n "$root" ] && [ -f "$root/include/nvrtc.h" ] && [ -f "$root/include/cuda_bf16.h" ] \
      && ls "$root"/lib*/libnvrtc.so* >/dev/null 2>&1 && { echo "$root"; return 0; }
  done
  return 0
}

# Sets ASSAY_CUDA_ROOT: the machine's toolkit, or NVIDIA's PyPI wheels under .deps/.
provide_cuda() {
  ASSAY_CUDA_ROOT=$(find_toolkit)
  if [ -z "$ASSAY_CUDA_ROOT" ]; then
    ASSAY_CUDA_ROOT="$PWD/.deps/cuda/nvidia/cu13"
    if [ ! -f "$ASSAY_CUDA_ROOT/include/nvrtc.h" ]; then
      install_packages python3 python3-pip
      say "no CUDA Toolkit found: taking NVRTC and its headers from NVIDIA's PyPI wheels into .deps/ (about 100 MB)"
      python3 -m pip install --quiet --no-deps --upgrade --target .deps/cuda \
        'nvidia-cuda-nvrtc==13.0.*' 'nvidia-cuda-runtime==13.0.*' 'nvidia-cuda-crt==13.0.*' 'nvidia-cuda-cccl==13.0.*' \
        >&2 || die "pip could not fetch NVRTC; install the CUDA Toolkit, or set CUDA_HOME to one"
    fi
  fi
  export ASSAY_CUDA_ROOT
  say "CUDA: $ASSAY_CUDA_ROOT"
}

# build PRESET [TARGET...]
build() {
  local preset=$1; shift
  local log="build/$preset.log"
  mkdir -p build
  say "building (preset $preset; log in $log)"
  { cmake --preset "$preset" -DASSAY_CUDA_ROOT="$ASSAY_CUDA_ROOT" &&
    cmake --build --preset "$preset" ${1:+--target "$@"}; } >"$log" 2>&1 \
    || { grep -nE 'error|Error|FAILED' "$log" | head -40 >&2; tail -20 "$log" >&2; die "the build failed; see $log"; }
}
