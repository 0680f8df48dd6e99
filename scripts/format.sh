#!/usr/bin/env bash
# Formats the tree, or with --check says what is not formatted. Needs clang-format 19.
set -euo pipefail
cd "$(dirname "$0")/.."
format=$(command -v clang-format-19 || command -v clang-format) || { echo "install clang-format-19" >&2; exit 3; }
git ls-files '*.cc' '*.h' | { [ "${1:-}" = --check ] && xargs "$format" --dry-run -Werror || xargs "$format" -i; }
