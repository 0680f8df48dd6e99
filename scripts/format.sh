#!/usr/bin/env bash
# Formats the tree, or with --check says what is not formatted. Needs clang-format 19.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib/setup.sh
format=$(command -v clang-format-19) || die "clang-format-19 is missing: apt-get install ${ASSAY_LINT_PACKAGES[*]}"
how=(-i)
[ "${1:-}" = --check ] && how=(--dry-run -Werror)
git ls-files '*.cc' '*.h' | xargs "$format" "${how[@]}"
