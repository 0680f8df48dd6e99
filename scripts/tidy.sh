#!/usr/bin/env bash
# clang-tidy 19 over the sources, findings are errors.
#
#   scripts/tidy.sh [PRESET]             all of them, as PRESET (default dev) compiles them
#   scripts/tidy.sh PRESET --changed     what differs from where this branch left main: sources as they are, headers through a source that
#                                        includes them. $ASSAY_BASE names another commit. Where none is known, every sixteenth source.
#
# With ASSAY_TIDY_SECONDS=N no source is begun after N seconds, in an order that another commit shuffles anew; what is left out is said.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib/setup.sh
preset=${1:-dev}
command -v clang-tidy-19 >/dev/null || die "clang-tidy-19 is missing: apt-get install ${ASSAY_LINT_PACKAGES[*]}"
[ -f "build/$preset/compile_commands.json" ] || cmake --preset "$preset" >/dev/null

sources() { git ls-files -co --exclude-standard '*.cc' | grep -vE '_test\.cc$|^fuzz/|^examples/'; }

# The commit to compare with: what main and this branch have in common; on main itself the commit before.
base() {
  local head common name
  head=$(git rev-parse HEAD)
  [ -n "${ASSAY_BASE:-}" ] && { git rev-parse --verify -q "$ASSAY_BASE^{commit}"; return; }
  for name in origin/main main; do
    common=$(git merge-base HEAD "$name" 2>/dev/null) || continue
    [ "$common" != "$head" ] && { echo "$common"; return; }
  done
  git rev-parse --verify -q 'HEAD^'
}

# The sources that show what `base` differs in: each changed one; for a changed header the source beside it, else the first that names it.
changed() {
  local file
  git diff --name-only --diff-filter=d "$1" -- '*.cc' '*.h' | while read -r file; do
    case $file in
      *.cc) echo "$file" ;;
      *.h) if [ -f "${file%.h}.cc" ]; then echo "${file%.h}.cc"; else sources | xargs grep -lF "\"$file\"" | head -1; fi ;;
    esac
  done | sort -u | grep -xFf <(sources) || true
}

if [ "${2:-}" != --changed ]; then
  mapfile -t files < <(sources)
elif since=$(base); then
  mapfile -t files < <(changed "$since")
  say "clang-tidy: ${#files[@]} sources for what differs from $(git rev-parse --short "$since")"
else
  mapfile -t files < <(sources | awk 'NR % 16 == 1')
  say "clang-tidy: no commit to compare with is known; ${#files[@]} sources, every sixteenth"
fi
[ ${#files[@]} -eq 0 ] && exit 0
export PRESET=build/$preset SECONDS_LEFT=${ASSAY_TIDY_SECONDS:-0}
export UNTIL=$(($(date +%s) + SECONDS_LEFT))
left_out=$(mktemp)
trap 'rm -f "$left_out"' EXIT
# shellcheck disable=SC2016  # What bash -c expands.
printf '%s\n' "${files[@]}" | shuf --random-source=<(git rev-parse HEAD; yes) |
  xargs -P "$(nproc)" -n 1 bash -c '
    [ "$SECONDS_LEFT" -gt 0 ] && [ "$(date +%s)" -ge "$UNTIL" ] && { echo "$2" >>"$1"; exit 0; }
    exec clang-tidy-19 -p "$PRESET" --quiet --extra-arg=-Wno-unknown-warning-option --extra-arg=-Wno-deprecated-declarations \
      --extra-arg=-Wno-ignored-gch "$2"' tidy "$left_out"
[ ! -s "$left_out" ] || say "clang-tidy: no time was left for $(wc -l <"$left_out") of ${#files[@]}: $(tr '\n' ' ' <"$left_out")"
