#!/usr/bin/env bash
# vet_all.sh PROGRAM FOLDER [DTYPE...]: judges the naive kernel of every shipped op, for each DTYPE (default: f32 bf16), and leaves a
# vetted folder of each in FOLDER/OP-DTYPE. Needs no GPU. What on_gpu.sh calls. JOBS=N judges N at a time.
set -euo pipefail
program=${1:?usage: vet_all.sh PROGRAM FOLDER [DTYPE...]}
folder=${2:?usage: vet_all.sh PROGRAM FOLDER [DTYPE...]}
shift 2
[ $# -gt 0 ] || set -- f32 bf16
source=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$folder"

vet() {  # OP DTYPE [FOLDER [OPTION...]]
  local op=$1 dtype=$2 to=${3:-$folder/$1-$2}
  if "$program" check "$source/ops/$op/naive" --op "$op" --dtype "T=$dtype" --effort quick --emit "$to" "${@:4}" 2>"$to.log"; then
    echo "${to##*/}: vetted"
    rm -f "$to.log"
  else
    cat "$to.log" >&2
    echo "${to##*/}: not accepted" >&2
    exit 255  # xargs starts no more.
  fi
}
export -f vet
export program folder source
for dtype in "$@"; do
  for candidate in "$source"/ops/*/naive; do echo "$(basename "$(dirname "$candidate")") $dtype"; done
done | xargs -P "${JOBS:-1}" -n 2 bash -euc 'vet "$@"' vet
# One for another chip than the one at hand, which must be refused there.
vet softmax f32 "$folder/softmax-f32-sm_80" --arch sm_80
