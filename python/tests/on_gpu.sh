#!/usr/bin/env bash
# on_gpu.sh FOLDER: tries the vetted kernels in FOLDER (vet_all.sh makes it, without a GPU) on this machine's GPU, from torch,
# torch.compile and C++. Needs python3 with torch, and g++. Takes some minutes.
set -euo pipefail
folder=$(realpath "${1:?usage: on_gpu.sh FOLDER}")
cd "$(dirname "$0")"
exec "${PYTHON:-python3}" gpu_vetted.py "$folder"
