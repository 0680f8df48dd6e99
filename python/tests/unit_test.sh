#!/usr/bin/env bash
# unit_test.sh SOURCE PROGRAM: python/tests under pytest. $PYTHON names the Python; tests of loaders need torch in it.
set -uo pipefail
source=$(realpath "$1")
export ASSAY_PROGRAM=$2
python=${PYTHON:-python3}
skip() { printf '%s: Skipped\n%s\n\n' "$0" "$*"; exit 77; }
"$python" -c 'import pytest' 2>/dev/null || skip "$python has no pytest: pip install pytest torch, and name that Python in \$PYTHON"
cd "$source/python/tests" && exec env PYTHONPATH="$source/python" "$python" -m pytest -q -rs -p no:cacheprovider .
