#!/usr/bin/env bash
# Fuzzes every reader of what others wrote (fuzz/README.md), each for so many seconds or executions. Installs Clang 19 where it is
# missing, and builds what it needs.
#
#   scripts/fuzz.sh                      60 seconds each
#   scripts/fuzz.sh 600                  600 seconds each
#   scripts/fuzz.sh 0 10000000           until each has had ten million executions, those of earlier starts included
#   scripts/fuzz.sh 60 0 ptx requests    these targets alone
#   ASSAY_FUZZ_JOBS=8 scripts/fuzz.sh 0 10000000    eight targets at a time (default: one a core)
#
# A start that was cut short loses a slice of ten minutes at most: executions are counted in build/fuzz/found/TARGET.count, what is
# interesting lies in build/fuzz/corpus/TARGET, what was found in build/fuzz/found/TARGET-*. At the end: the table of docs/reliability.md,
# of all starts. Status 1 if anything was found.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib/setup.sh

seconds=${1:-60}
runs=${2:-0}
[ $# -gt 2 ] && shift 2 || shift $#
install_packages "${ASSAY_PACKAGES[@]}" "${ASSAY_FUZZ_PACKAGES[@]}"
provide_cuda
build fuzz assay_fuzz

program=build/fuzz/bin/assay_fuzz
found=build/fuzz/found
slice=600
mkdir -p "$found" build/fuzz/corpus

counted() { cat "$found/$1.count" 2>/dev/null || echo 0; }
# fuzz TARGET SEEDS: for the seconds, or up to the executions, that were asked for.
fuzz() {
  local target=$1 seeds=$2 corpus=build/fuzz/corpus/$1 log=$found/$1.log left=$seconds status=0
  local limits=(-rss_limit_mb=3072 -timeout=30 -max_len=4096 -print_final_stats=1 "-artifact_prefix=$found/$target-")
  [ ! -f "fuzz/$target.dict" ] || limits+=("-dict=fuzz/$target.dict")
  mkdir -p "$corpus"
  while :; do
    local time=$slice wanted=()
    if [ "$seconds" -gt 0 ]; then
      [ "$left" -gt 0 ] || break
      time=$((left < slice ? left : slice))
      left=$((left - time))
    fi
    if [ "$runs" -gt 0 ]; then
      [ "$(counted "$target")" -lt "$runs" ] || break
      wanted=("-runs=$((runs - $(counted "$target")))")
    fi
    ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1} \
      "$program" "--target=$target" "${limits[@]}" "-max_total_time=$time" "${wanted[@]}" "$corpus" "$seeds" >"$log" 2>&1 || status=$?
    local units
    units=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    echo $(($(counted "$target") + ${units:-0})) >"$found/$target.count.new" && mv "$found/$target.count.new" "$found/$target.count"
    [ $status -eq 0 ] || { cp "$log" "$found/$target.found.log"; return 1; }
  done
}

mapfile -t targets < <("$program" --targets)
chosen=()
for line in "${targets[@]}"; do
  case " $* " in *" ${line%% *} "*|"  ") chosen+=("$line") ;; esac
done
for line in "${chosen[@]}"; do
  while [ "$(jobs -rp | wc -l)" -ge "${ASSAY_FUZZ_JOBS:-$(nproc)}" ]; do wait -n || true; done
  read -r target seeds <<<"$line"
  fuzz "$target" "$seeds" &
done
wait

failed=()
echo "| target | executions | found |"
echo "|---|---|---|"
for line in "${chosen[@]}"; do
  target=${line%% *} said=nothing
  [ ! -f "$found/$target.found.log" ] || { said="see $found/$target.found.log" failed+=("$target"); }
  echo "| $target | $(counted "$target" | sed ':a;s/\B[0-9]\{3\}\>/,&/;ta') | $said |"
done
[ ${#failed[@]} -eq 0 ] || { say "found something in: ${failed[*]}"; exit 1; }
