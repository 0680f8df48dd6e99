#!/usr/bin/env bash
# install_test.sh BUILD SOURCE TOOLKIT: what `cmake --install` lays out works elsewhere, with this tree gone.
#
# Installs, moves the installation, builds examples/judge against it, and runs that program and the installed `assay` in a mount namespace
# in which an empty file system lies over the source tree and everything built in it.
set -euo pipefail
build=$(realpath "$1") source=$(realpath "$2") toolkit=$(realpath "$3")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() { echo "FAILED: $*" >&2; exit 1; }

# Stripped, because sanitizers and debug builds make gigabytes of it.
cmake --install "$build" --prefix "$scratch/first" --strip >"$scratch/install.log" || { cat "$scratch/install.log"; fail "cmake --install"; }
prefix=$scratch/moved
mv "$scratch/first" "$prefix"
for part in bin/assay libexec/assay/assay-worker share/assay/ops/rms_norm/op.json share/assay/ops/prelude/assay/reference.cuh \
  share/assay/prompts/system.md share/assay/schemas/run.schema.json share/assay/scripts/jsonl_to_parquet.py include/assay/judge.h; do
  [ -f "$prefix/$part" ] || fail "$part is not installed"
done
if grep -rlE 'nlohmann|getenv|abort|"base/' "$prefix/include"; then fail "these headers show what is ours alone"; fi

cmake -S "$source/examples/judge" -B "$scratch/example" -DCMAKE_PREFIX_PATH="$prefix" "${@:4}" >"$scratch/example.log" \
  && cmake --build "$scratch/example" >>"$scratch/example.log" || { cat "$scratch/example.log"; fail "the example does not build"; }

cp -r "$source/ops/row_sum/naive" "$scratch/right"
cp -r "$source/ops/row_sum/naive" "$scratch/wrong"
# One block too few: the last rows are written by nobody.
sed -i 's/"grid": *\["\([^"]*\)"/"grid": ["max(1, \1 - 1)"/' "$scratch/wrong/launch.json"
cmp -s "$scratch/right/launch.json" "$scratch/wrong/launch.json" && fail "the wrong candidate is the right one"

cat >"$scratch/inside.sh" <<'INSIDE'
set -uo pipefail
source=$1 toolkit=$2 prefix=$3 scratch=$4
# Wheels may lie in the tree.
mkdir -p "$scratch/cuda"
mount --bind "$toolkit" "$scratch/cuda"
mount -t tmpfs none "$source"
[ -z "$(ls -A "$source")" ] || { echo "FAILED: the source tree is there still" >&2; exit 1; }
export ASSAY_CUDA_ROOT=$scratch/cuda
cd "$scratch"
expect() {  # expect STATUS WORDS COMMAND...
  local status=$1 words=$2 said got
  shift 2
  said=$("$@" 2>&1)
  got=$?
  [ $got -eq "$status" ] && grep -qF -- "$words" <<<"$said" && return
  printf 'FAILED: %s\nstatus %s, wanted %s and "%s"; said:\n%s\n' "$*" "$got" "$status" "$words" "$said" >&2
  exit 1
}
assay=$prefix/bin/assay
expect 0 "$prefix/share/assay/prompts" "$assay" doctor
expect 0 row_sum "$assay" ops list
expect 0 accepted "$assay" check right --op row_sum --effort quick
expect 1 refuted "$assay" check wrong --op row_sum --effort quick
expect 0 vetted "$assay" generate embedding_rmsnorm_backward --effort quick --out run
unset ASSAY_CUDA_ROOT
[ -e /usr/local/cuda/include/nvrtc.h ] || { mkdir -p /usr/local/cuda && mount --bind "$scratch/cuda" /usr/local/cuda; } || exit 1
expect 0 accepted "$scratch/example/judge" row_sum right
expect 1 refuted "$scratch/example/judge" row_sum wrong
expect 3 "did you mean 'row_sum'?" "$scratch/example/judge" row_sun right
INSIDE
unshare --mount --map-root-user bash "$scratch/inside.sh" "$source" "$toolkit" "$prefix" "$scratch"
echo "installed, moved, and used with the source tree gone"
