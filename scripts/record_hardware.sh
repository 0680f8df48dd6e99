#!/usr/bin/env bash
# Records anew what the emulator is held to, on a machine with a GPU.
#
#   scripts/record_hardware.sh [--bin DIR] [--seconds S] OUT      records into OUT and says what differs from the tree's recordings
#   scripts/record_hardware.sh --take OUT                         puts OUT's recordings into the tree (no GPU needed)
#
# In OUT: CHIP.bin, CHIP.json         every form of every instruction, its results over chosen and random inputs (tests/conformance)
#         CHIP_programs.json          random programs made of the forms
#         mufu.json, mufu_rows.inc    the approximate functions over whole binades, and the quadratics that compute them
#         litmus-CHIP.json            what the memory showed, S seconds a test (default 2; there are more than a hundred)
#         recorded.log                what was run, on which GPU, with which driver
#
# Needs the programs of a build (--bin; default build/release/bin), python3, and the NVIDIA driver only; 2 GB in a temporary folder.
# Another chip may well differ in programs and litmus counts; a difference in forms or mufu is one between chips, and the emulator has to
# be told whose it is (validator/emu/semantics/mufu.h).
set -euo pipefail
cd "$(dirname "$0")/.."
bin=build/release/bin seconds=2 take=
while [ $# -gt 0 ]; do
  case $1 in
    --bin) bin=$2; shift 2 ;;
    --seconds) seconds=$2; shift 2 ;;
    --take) take=1; shift ;;
    -h | --help) sed -n '2,/^set -e/{/^set -e/d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
    -*) echo "record_hardware.sh: no option $1 (--help)" >&2; exit 3 ;;
    *) break ;;
  esac
done
out=${1:?usage: scripts/record_hardware.sh [--bin DIR] [--seconds S] [--take] OUT}

where() {  # the place in the tree of a file in OUT
  case $1 in
    litmus-*) echo "tests/litmus/recorded/${1#litmus-}" ;;
    mufu_rows.inc) echo validator/emu/semantics/mufu_rows.inc ;;
    *) echo "tests/conformance/$1" ;;
  esac
}

if [ -n "$take" ]; then
  shopt -s nullglob
  for file in "$out"/*.bin "$out"/*.json "$out"/*.inc; do
    cp "$file" "$(where "$(basename "$file")")" && echo "$(where "$(basename "$file")")"
  done
  echo "now build, put what build/release/bin/litmus_table prints into docs/litmus.md, and run: ctest --test-dir build/release -L 'conformance|litmus'"
  exit 0
fi

gpu=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -1) || { echo "no GPU here: nvidia-smi does not run" >&2; exit 3; }
chip=$(sed 's/^NVIDIA *//; s/[ ,].*//' <<<"$gpu")
lower=$(tr '[:upper:]' '[:lower:]' <<<"$chip")
for program in conformance_ptx conformance_record conformance_record_mufu litmus_gpu; do
  [ -x "$bin/$program" ] || { echo "$bin/$program is not there: build it, or give --bin" >&2; exit 3; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"
say() { echo "$*" | tee -a "$out/recorded.log"; }
say "$gpu, $(date +%F)"

mkdir "$work/forms" "$work/programs" "$work/mufu"
"$bin/conformance_ptx" tests/conformance/forms.txt "$work/forms" >"$work/log"
"$bin/conformance_record" tests/conformance/forms.txt "$work/forms" "$chip" "$out/$lower" >>"$work/log"
say "forms: $(grep -c '^    \["' "$out/$lower.json")"
"$bin/conformance_ptx" tests/conformance/forms.txt "$work/programs" programs >>"$work/log"
"$bin/conformance_record" tests/conformance/forms.txt "$work/programs" "$chip" "$out/${lower}_programs" programs >>"$work/log"
rm -f "$out/${lower}_programs.bin"
say "programs: $(grep -c '^    \[' "$out/${lower}_programs.json")"
"$bin/conformance_record_mufu" "$chip" "$work/mufu" >>"$work/log"
cp "$work/mufu/mufu.json" "$out/mufu.json"
if python3 tests/conformance/fit_mufu.py "$work/mufu" >"$out/mufu_rows.inc" 2>"$work/fit"; then
  say "mufu: quadratics found for all"
else
  rm -f "$out/mufu_rows.inc"
  say "mufu: $(tail -1 "$work/fit")"
fi
"$bin/litmus_gpu" tests/litmus/tests "$seconds" >"$out/litmus-$lower.json"
say "litmus: $(grep -c '"name"\|^  "[^"]*": {' "$out/litmus-$lower.json" || true) tests, $seconds s each"

# Results, without the lines that name the chip and the day.
results() { grep -v '"chip"\|"device"\|"driver"\|"cuda_driver"\|"recorded"\|"date"' "$1" | sed 's/,$//'; }
for file in "$out/$lower.json" "$out/${lower}_programs.json" "$out/mufu.json" "$out/mufu_rows.inc"; do
  [ -f "$file" ] || continue
  name=$(basename "$file")
  kept=$(where "${name/#$lower/h200}")
  # The tree keeps digests of some ranges of mufu.json: those are looked for.
  results "$kept" >"$work/kept"
  if [ "$name" = mufu.json ]; then grep -vxFf <(results "$file") "$work/kept" | sed 's/^/< /' >"$work/diff"; else diff <(results "$file") "$work/kept" >"$work/diff"; fi || true
  if [ ! -s "$work/diff" ]; then say "$name: as in $kept"; else say "$name: $(grep -c '^<' "$work/diff") lines differ from $kept"; fi
done
