#!/usr/bin/env bash
# wheel_test.sh SOURCE [BUILD]: from an empty virtual environment: the wheel is built and installed, the README's script judges a kernel,
# and uninstalling leaves nothing. Prints the wheel's size. With BUILD the wheel holds the programs of that finished build; without, pip
# compiles them, as it does for who installs from the sources. ASSAY_WHEEL names a wheel to be tried instead of building one. Where
# ASSAY_TORCH_PYTHON names a Python with torch (scripts/fetch_torch.sh makes .deps/torch), kernels are judged against a torch function
# as well, by the same wheel beside that torch.
set -euo pipefail
source=$(realpath "$1") build=${2:+$(realpath "$2")}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() { echo "FAILED: $*" >&2; exit 1; }
skip() { printf '%s: Skipped\n%s\n\n' "$0" "$*"; exit 77; }

python=${PYTHON:-python3}
"$python" -c 'import venv, ensurepip' 2>/dev/null || skip "python3 makes no virtual environments: apt install python3-venv"
"$python" -m venv "$scratch/venv"
pip=("$scratch/venv/bin/python" -m pip --disable-pip-version-check --no-input)

wheel=${ASSAY_WHEEL:-}
if [ -z "$wheel" ]; then
  # What the build needs of PyPI; without it there is nothing to try.
  "${pip[@]}" download -q --no-deps -d "$scratch/first" 'scikit-build-core>=0.10' >"$scratch/pip.log" 2>&1 \
    || skip "pip cannot fetch scikit-build-core: $(grep -m1 -i error "$scratch/pip.log")"
  "${pip[@]}" wheel -q --no-deps -w "$scratch" ${ASSAY_CUDA_ROOT:+-C "cmake.define.ASSAY_CUDA_ROOT=$ASSAY_CUDA_ROOT"} \
    ${build:+-C "cmake.define.ASSAY_BUILT=$build" -C "build-dir=$scratch/build"} "$source" \
    >"$scratch/build.log" 2>&1 || { tail -40 "$scratch/build.log"; fail "pip wheel"; }
  wheel=$(ls "$scratch"/assay-*.whl)
fi
echo "wheel: $(basename "$wheel"), $(stat -c %s "$wheel" | numfmt --to=iec) bytes"

inside() { (cd "$scratch/venv" && find . -name __pycache__ -prune -o -print | sort); }
inside >"$scratch/before"
"${pip[@]}" install -q --no-deps --no-index "$wheel" || fail "pip install"

# The README's script: the indented lines after its heading.
awk '/^From Python, after/ { on = 1; next } on && /^    / { print substr($0, 5); said = 1; next } on && NF && said { exit } on { print "" }' \
  "$source/README.md" >"$scratch/script.py"
grep -q assay.check "$scratch/script.py" || fail "the README has no script"
mkdir "$scratch/work"
(cd "$scratch/work" && env -u ASSAY_PROGRAM -u ASSAY_OPS PATH=/usr/bin:/bin "$scratch/venv/bin/python" "$scratch/script.py") >"$scratch/said" 2>&1 \
  || { cat "$scratch/said"; fail "the README's script"; }
grep -q '^accepted' "$scratch/said" || { cat "$scratch/said"; fail "the README's script judged otherwise"; }
for file in kernel.py kernel.hpp certificate.json; do
  [ -f "$scratch/work/vetted/row_sum/$file" ] || fail "the script left no $file"
done
"$scratch/venv/bin/assay" ops list 2>&1 | grep -q softmax || fail "the command assay"

torch=${ASSAY_TORCH_PYTHON:-$source/.deps/torch/bin/python}
if "$torch" -c 'import torch' 2>/dev/null; then
  "${pip[@]}" install -q --no-deps --no-index --target "$scratch/beside" "$wheel" || fail "pip install --target"
  mkdir "$scratch/torch_work"
  (cd "$scratch/torch_work" && env -u ASSAY_PROGRAM -u ASSAY_OPS PATH=/usr/bin:/bin PYTHONPATH="$scratch/beside" \
    "$torch" "$source/python/tests/torch_softmax.py" "$scratch/torch_work") >"$scratch/said" 2>&1 \
    || { cat "$scratch/said"; fail "a torch function as the op"; }
  echo "judged against a torch function"
else
  echo "not judged against a torch function: $torch has no torch (scripts/fetch_torch.sh, or ASSAY_TORCH_PYTHON)"
fi

"${pip[@]}" uninstall -q -y assay || fail "pip uninstall"
inside | diff "$scratch/before" - || fail "pip uninstall left these"
echo "installed, judged, uninstalled"
