#!/usr/bin/env bash
# Fetches PyTorch into .deps/torch, a virtual environment of its own, for `assay import`. Judging needs none of it.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib/setup.sh

if [ -x .deps/torch/bin/python3 ] && .deps/torch/bin/python3 -c 'import torch.export' 2>/dev/null; then
  say "torch: $(.deps/torch/bin/python3 -c 'import torch; print(torch.__version__)') in .deps/torch"
  exit 0
fi
command -v python3 >/dev/null || install_packages python3 python3-venv
mkdir -p .deps || die "cannot make .deps/ here: $PWD is full or read-only"
log=.deps/torch.log
say "fetching torch into .deps/torch (some 5 GB with what it brings along; PIP_INDEX_URL names a smaller source)"
rm -rf .deps/torch
python3 -m venv .deps/torch >"$log" 2>&1 \
  || { install_packages python3-venv; rm -rf .deps/torch; python3 -m venv .deps/torch >"$log" 2>&1; } \
  || die "$(explain "no virtual environment could be made" <"$log")"
# What it said is kept in memory: where the disk is full, a log is the first that is lost.
said=$(.deps/torch/bin/python3 -m pip install --quiet torch 2>&1) || {
  why=$(explain "pip could not fetch torch" <<<"$said")
  rm -rf .deps/torch
  tail -3 <<<"$said" >&2
  die "$why"
}
.deps/torch/bin/python3 -c 'import torch.export' >"$log" 2>&1 \
  || { tail -3 "$log" >&2; die "the torch that was fetched cannot be imported"; }
say "torch: $(.deps/torch/bin/python3 -c 'import torch; print(torch.__version__)') in .deps/torch"
