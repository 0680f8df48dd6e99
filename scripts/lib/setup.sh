# Shared by demo.sh and test.sh: packages, CUDA, build. Source it from the repository's root.
# Needs nothing but a Debian 12 or Ubuntu 24.04 system (or newer) with apt-get.

say() { printf '\033[1m==>\033[0m %s\n' "$*" >&2; }
die() { printf 'error: %s\n' "$*" >&2; exit 3; }

ASSAY_PACKAGES=(
  g++ cmake ninja-build mold pkg-config git ca-certificates
  bubblewrap libseccomp-dev
  nlohmann-json3-dev libcli11-dev libfmt-dev libcurl4-openssl-dev libssl-dev libsqlite3-dev libzstd-dev
  libgtest-dev libgmock-dev libbenchmark-dev libcpp-httplib-dev
)
# What tests alone run: a Slurm of their own.
# libpmix2: without that library Ubuntu 24.04's slurmctld takes the failure to open it for one of its own, and every job for one of an invalid account.
ASSAY_TEST_PACKAGES=(slurmctld slurmd slurm-client munge libpmix2)

# Tests of pages look at them in a browser. Where none can be had, these tests say so and do not run.
ASSAY_PAGE_PACKAGES=(chromium)

# What scripts/format.sh and scripts/tidy.sh run; Debian 12 and Ubuntu 24.04 have them.
ASSAY_LINT_PACKAGES=(clang-format-19 clang-tidy-19)

# For scripts/fuzz.sh alone: Debian 12 and Ubuntu 24.04 both have them.
ASSAY_FUZZ_PACKAGES=(clang-19 libclang-rt-19-dev)

# Programs speak English, so that explain() knows what they say, whatever this machine's language is and whether it is installed.
export LC_ALL=C.UTF-8

# Where there is hardly any room left, and how much; or nothing. A full disk often keeps a program from saying so, for logs lie on it.
little_room() {
  local folder left
  for folder in . "${TMPDIR:-/tmp}" /var/cache; do
    left=$(df -k --output=avail "$folder" 2>/dev/null | tail -1 | tr -dc 0-9)
    if [ -n "$left" ] && [ "$left" -lt $((32 * 1024)) ]; then
      echo "$(df --output=target "$folder" | tail -1) has $left KiB left"
      return 0
    fi
  done
}

# What a failed command said, by the cause that people can do something about: a table of what programs write, and what it means.
# explain FALLBACK <WHAT_IT_SAID
explain() {
  local fallback=$1 said room
  # A machine whose name stands in no table makes sudo warn, each time, and work.
  said=$(tail -c 32768 | grep -v '^sudo: unable to resolve host' || true)
  says() { grep -qiE "$1" <<<"$said"; }
  room=$(little_room)
  if says "no space left|(not|n't have) enough free space|disk quota exceeded"; then
    echo "$fallback: the disk is full (${room:-$(df -h --output=target,avail . | awk 'END { print $1 " has " $2 " left" }')}); free space and try again"
  elif says 'password is required|a terminal is required|not in the sudoers|not allowed to'; then
    echo "$fallback: this user may not use sudo here; run as root once, or let an administrator install them"
  elif says 'temporary failure (in name )?resolv|could not resolve|name or service not known|network is unreachable|failed to establish a new connection|connection (refused|timed out)|unable to connect|could not connect'; then
    echo "$fallback: there is no network; connect this machine, or set http_proxy and https_proxy"
  elif says 'no matching distribution|could not find a version'; then
    echo "$fallback: NVIDIA has no such wheel for this machine ($(uname -m), $(python3 --version 2>&1)); install the CUDA Toolkit, or set CUDA_HOME to one"
  elif says 'certificate verify failed|ssl.*certificate'; then
    echo "$fallback: the server's certificate is not trusted; install ca-certificates and set the clock"
  elif says 'could not get lock|unable to acquire the dpkg'; then
    echo "$fallback: another package manager is at work; wait for it and try again"
  elif says 'unable to locate package|has no installation candidate'; then
    echo "$fallback: $(grep -iEm1 'unable to locate package|has no installation candidate' <<<"$said"); Debian 12, Ubuntu 24.04 or newer are needed"
  elif says 'killed signal terminated|killed *\(program cc1plus\)|virtual memory exhausted|out of memory'; then
    echo "$fallback: memory ran out; build with fewer jobs (CMAKE_BUILD_PARALLEL_LEVEL=1) or on a larger machine"
  elif says 'read-only file system|permission denied'; then
    echo "$fallback: $(grep -iEm1 'read-only file system|permission denied' <<<"$said")"
  elif [ -n "$room" ]; then
    echo "$fallback: the disk is full ($room); free space and try again"
  else
    echo "$fallback"
  fi
}

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

# Installs those of the named packages that are missing, and says which.
install_packages() {
  local missing=() package
  for package in "$@"; do
    # Ubuntu's name of a library whose times have 64 bits may end in t64.
    [[ $(dpkg-query -W -f='${db:Status-Abbrev}|' "$package" "${package}t64" 2>/dev/null) == *ii* ]] || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return
  command -v apt-get >/dev/null || die "these packages are missing and there is no apt-get: ${missing[*]}"
  [ "$(id -u)" -eq 0 ] || command -v sudo >/dev/null \
    || die "these packages are missing, and this user is not root and has no sudo: apt-get install ${missing[*]}"
  say "installing from the distribution: ${missing[*]}"
  # sudo forgets variables, and with them the way out of a network that has proxies.
  local log name surroundings=(DEBIAN_FRONTEND=noninteractive LC_ALL=C)
  for name in http_proxy https_proxy no_proxy; do
    [ -z "${!name:-}" ] || surroundings+=("$name=${!name}")
  done
  log=$(mktemp) || die "cannot write to ${TMPDIR:-/tmp}: the disk is full or read-only"
  as_root env "${surroundings[@]}" apt-get update -qq >"$log" 2>&1 \
    || die "$(explain "apt-get could not fetch the lists of packages" <"$log")"
  # Lists that could not be fetched are warnings to apt-get; what lacks then is said by the next step, which knows both.
  as_root env "${surroundings[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >>"$log" 2>&1 \
    || { tail -5 "$log" >&2; die "$(explain "apt-get could not install ${missing[*]}" <"$log")"; }
  rm -f "$log"
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
      local said why
      mkdir -p .deps || die "cannot make .deps/ here: $PWD is full or read-only"
      said=$(python3 -m pip install --quiet --no-deps --upgrade --target .deps/cuda \
        'nvidia-cuda-nvrtc==13.0.*' 'nvidia-cuda-runtime==13.0.*' 'nvidia-cuda-crt==13.0.*' 'nvidia-cuda-cccl==13.0.*' \
        2>&1) || {
        why=$(explain "pip could not fetch NVRTC" <<<"$said")
        rm -rf .deps/cuda
        tail -3 <<<"$said" >&2
        die "$why"
      }
      [ -f "$ASSAY_CUDA_ROOT/include/nvrtc.h" ] \
        || die "NVIDIA's wheels lie otherwise than expected: there is no $ASSAY_CUDA_ROOT/include/nvrtc.h; install the CUDA Toolkit, or set CUDA_HOME to one"
    fi
  fi
  export ASSAY_CUDA_ROOT
  say "CUDA: $ASSAY_CUDA_ROOT"
}

# configure PRESET [OPTION...]
configure() {
  local preset=$1; shift
  mkdir -p build || die "cannot make build/ here: $PWD is full or read-only"
  cmake --preset "$preset" -DASSAY_CUDA_ROOT="$ASSAY_CUDA_ROOT" "$@" >"build/$preset.configure.log" 2>&1 \
    || { tail -20 "build/$preset.configure.log" >&2; die "$(explain "cmake failed" <"build/$preset.configure.log")"; }
}

# build PRESET [TARGET...]
build() {
  local preset=$1; shift
  local log="build/$preset.log"
  mkdir -p build || die "cannot make build/ here: $PWD is full or read-only"
  say "building (preset $preset; log in $log)"
  { cmake --preset "$preset" -DASSAY_CUDA_ROOT="$ASSAY_CUDA_ROOT" &&
    cmake --build --preset "$preset" ${1:+--target "$@"}; } >"$log" 2>&1 \
    || { grep -nE 'error|Error|FAILED' "$log" | head -40 >&2 || true; tail -20 "$log" >&2; die "$(explain "the build failed; see $log" <"$log")"; }
}

# say_skipped LOG: which tests of ctest's last run were skipped, and why.
say_skipped() {
  [ -f "$1" ] || return 0
  awk '
    /^[0-9]+\/[0-9]+ Testing: / { test = $3 }
    /: Skipped$/ { why = ""; waiting = 1; next }
    waiting && NF { why = why (why == "" ? "" : " ") $0 }
    waiting && (!NF || /^\[  SKIPPED/) { if (why !~ /^\[/) print "  " test ": " why; waiting = 0 }
  ' "$1" | sed 's/ \[  SKIPPED.*//' | sort -u | {
    mapfile -t skipped
    if [ ${#skipped[@]} -eq 0 ]; then
      say "no test was skipped"
    else
      say "${#skipped[@]} tests were skipped:"
      printf '%s\n' "${skipped[@]}" >&2
    fi
  }
}
