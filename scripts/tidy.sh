#!/usr/bin/env bash
# clang-tidy 19 over the sources of one preset (default dev), findings are errors.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-dev}
[ -f "build/$preset/compile_commands.json" ] || cmake --preset "$preset" >/dev/null
git ls-files '*.cc' | grep -vE '_test\.cc$|^fuzz/' | xargs -P "$(nproc)" -n 4 clang-tidy-19 -p "build/$preset" --quiet
