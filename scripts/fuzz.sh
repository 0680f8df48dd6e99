#!/usr/bin/env bash
# Fuzzes every reader of what others wrote (fuzz/README.md), each for so many seconds or executions. Installs Clang 19 where it is
# missing, and builds what it needs.
#
#   scripts/fuzz.sh                      60 seconds each
#   scripts/fuzz.sh 600                  600 seconds each
#   scripts/fuzz.sh 0 10000000           ten million executions each
#   scripts/fuzz.sh 60 0 ptx requests    these targets alone
#
# What was found lies in build/fuzz/found/TARGET-*; what is interesting, in build/fuzz/corpus/TARGET. Ends with status 1 if anything was.
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
mkdir -p build/fuzz/found build/fuzz/corpus
limits=(-rss_limit_mb=3072 -timeout=30 -max_len=4096 -print_final_stats=1)
[ "$seconds" -gt 0 ] && limits+=("-max_total_time=$seconds")
[ "$runs" -gt 0 ] && limits+=("-runs=$runs")
failed=()
while read -r target seeds; do
  case " $* " in *" $target "*|"  ") ;; *) continue ;; esac
  corpus=build/fuzz/corpus/$target
  log=build/fuzz/found/$target.log
  mkdir -p "$corpus"
  dictionary=()
  [ -f "fuzz/$target.dict" ] && dictionary=("-dict=fuzz/$target.dict")
  status=0
  ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1} \
    "$program" "--target=$target" "${limits[@]}" "${dictionary[@]}" \
    "-artifact_prefix=build/fuzz/found/$target-" "$corpus" "$seeds" >"$log" 2>&1 || status=$?
  printf '%-16s %12s executions  %s\n' "$target" \
    "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")" "$([ $status -eq 0 ] && echo 'nothing found' || echo "FOUND, see $log")"
  [ $status -eq 0 ] || failed+=("$target")
done < <("$program" --targets)
[ ${#failed[@]} -eq 0 ] || { say "found something in: ${failed[*]}"; exit 1; }
