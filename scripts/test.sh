#!/usr/bin/env bash
# Builds Assay and runs all its tests. Complete on a fresh Debian 12 or Ubuntu 24.04 machine.
#
#   scripts/test.sh                    release preset
#   scripts/test.sh asan-ubsan         another preset (dev, tsan, ...)
#   scripts/test.sh release -R ptx     further arguments go to ctest
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib/setup.sh

preset=${1:-release}
[ $# -gt 0 ] && shift
install_packages "${ASSAY_PACKAGES[@]}" "${ASSAY_TEST_PACKAGES[@]}"
(install_packages "${ASSAY_PAGE_PACKAGES[@]}") || say "tests of pages in a browser will not run"
provide_cuda
build "$preset"
say "running the tests"
status=0
ctest --test-dir "build/$preset" --output-on-failure -j "$(nproc)" "$@" || status=$?
say_skipped "build/$preset/Testing/Temporary/LastTest.log"
exit $status
