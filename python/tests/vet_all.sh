#!/usr/bin/env bash
# vet_all.sh PROGRAM FOLDER [DTYPE...]: judges the naive kernel of every shipped op, for each DTYPE (default: f32 bf16), and leaves a
# vetted folder of each in FOLDER/OP-DTYPE. Needs no GPU. What on_gpu.sh calls.
set -euo pipefail
program=${1:?usage: vet_all.sh PROGRAM FOLDER [DTYPE...]}
folder=${2:?usage: vet_all.sh PROGRAM FOLDER [DTYPE...]}
shift 2
[ $# -gt 0 ] || set -- f32 bf16
source=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$folder"
for candidate in "$source"/ops/*/naive; do
  op=$(basename "$(dirname "$candidate")")
  for dtype in "$@"; do
    if "$program" check "$candidate" --op "$op" --dtype "T=$dtype" --effort quick --emit "$folder/$op-$dtype" 2>"$folder/log"; then
      echo "$op $dtype: vetted"
    else
      cat "$folder/log" >&2
      echo "$op $dtype: not accepted" >&2
      exit 1
    fi
  done
done
# One for another chip than the one at hand, which must be refused there.
"$program" check "$source/ops/softmax/naive" --op softmax --dtype T=f32 --arch sm_80 --effort quick --emit "$folder/softmax-f32-sm_80" \
  2>"$folder/log"
echo "softmax f32 sm_80: vetted"
rm -f "$folder/log"
