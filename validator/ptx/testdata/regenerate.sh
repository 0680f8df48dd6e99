#!/bin/sh
# Compiles testdata/sources for every architecture and checks that the front end takes each result and prints it back.
#   validator/ptx/testdata/regenerate.sh PTX_TEST [FOLDER]
# PTX_TEST is the built ptx_test. Results stay in FOLDER when one is named; copy from there what testdata/modules should hold.
set -eu
test_program=$1
here=$(cd "$(dirname "$0")" && pwd)
folder=${2:-$(mktemp -d)}
mkdir -p "$folder"
nvcc=${CUDA_HOME:-/usr/local/cuda}/bin/nvcc
cd "$here/sources"
for source in *.cu; do
  for arch in 75 80 90 90a; do
    "$nvcc" -w -ptx -std=c++17 -lineinfo -arch="sm_$arch" "$source" -o "$folder/${source%.cu}_$arch.ptx"
    # No paths of this machine.
    sed -i "s#\"$here/sources/#\"/src/#; s#\"/usr/local/cuda[^/]*/\(bin/../targets/x86_64-linux/\)*#\"/cuda/#" "$folder/${source%.cu}_$arch.ptx"
  done
done
ASSAY_PTX_MODULES="$folder" "$test_program" --gtest_filter='ModulesTest.*'
[ $# -ge 2 ] || rm -r "$folder"
