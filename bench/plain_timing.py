#!/usr/bin/env python3
"""Times row_sum kernels with nothing of Assay's, by cupy: what assay bench is held against.

    bench/plain_timing.py corpus/timing/honest corpus/timing/honest_workspace > plain.json

For each folder and each of row_sum's workloads 0 and 2: the median of 50 calls between two events, each behind a sum over a buffer of
twice the L2's size. Needs cupy and CUDA's headers.
"""
import json
import pathlib
import sys

import cupy

ROOT = pathlib.Path(__file__).resolve().parents[1]
SHAPES = ((8192, 4096), (1024, 128256))


def time_folder(folder):
    code = (folder / "kernel.cu").read_text()
    plan = json.loads((folder / "launch.json").read_text())
    args = plan["kernels"][0]["args"]
    module = cupy.RawModule(code=code, options=("-DASSAY_T=__nv_bfloat16", "-I/usr/local/cuda/include", "-std=c++17"), backend="nvrtc")
    kernel = module.get_function("row_sum")
    l2 = cupy.cuda.Device().attributes["L2CacheSize"]
    sweep = cupy.zeros(2 * l2 // 4, dtype=cupy.float32)
    result = {}
    for rows, columns in SHAPES:
        # Bits of bfloat16 between 1 and 2, both signs.
        noise = cupy.random.randint(0, 1 << 16, rows * columns, dtype=cupy.uint16)
        x = (noise & 0x807F) | 0x3F80
        buffers = {"x": x, "y": cupy.zeros(rows, dtype=cupy.uint16), "kept": cupy.zeros(rows + 32, dtype=cupy.float32)}
        values = [buffers[name] if name in buffers else cupy.int64({"rows": rows, "columns": columns}[name]) for name in args]
        grid, block = ((rows + 3) // 4,), (32, 4)
        times = []
        for i in range(55):
            buffers["y"].fill(0xFFFF)
            sweep.sum()
            begin, end = cupy.cuda.Event(), cupy.cuda.Event()
            begin.record()
            if "kept" in args:
                buffers["kept"].data.memset_async(0, buffers["kept"].nbytes)
            kernel(grid, block, tuple(values))
            end.record()
            end.synchronize()
            if i >= 5:
                times.append(cupy.cuda.get_elapsed_time(begin, end) * 1e-3)
        result[f"rows={rows} columns={columns}"] = sorted(times)[len(times) // 2]
    return result


def main():
    json.dump({pathlib.Path(folder).name: time_folder(pathlib.Path(folder)) for folder in sys.argv[1:]}, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
