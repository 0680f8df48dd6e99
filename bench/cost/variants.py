#!/usr/bin/env python3
"""Kernels that do the same work in better and worse ways, for holding the cost model to a GPU.

    bench/cost/variants.py FOLDER

writes FOLDER/OP/NAME/{kernel.cu,launch.json}. Each has one thing about it: who of a block reads which
element, how many bytes at once, how many threads share a row, how many blocks there are, how much
shared memory a block holds, how banks are met. They are plain rather than fast.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

HEAD = """#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;
"""

# Rows shared by `kGroup` threads; each of them sees its elements through EACH.
ROWS = """
constexpr int kThreads = @THREADS@;
constexpr int kGroup = @GROUP@;
constexpr int kVector = @VECTOR@;
constexpr int kRows = kThreads / kGroup;

struct alignas(kVector * sizeof(T)) Pack {
  T value[kVector];
};

template <class Each>
__device__ void visit(const T* row, long long columns, int lane, Each each) {
#if @CHUNKED@
  const long long part = (columns + kGroup - 1) / kGroup;
  const long long first = lane * part;
  const long long last = first + part < columns ? first + part : columns;
  for (long long c = first; c < last; ++c) each(c, static_cast<float>(row[c]));
#else
  if (kVector > 1 && columns % kVector == 0) {
    for (long long c = lane * kVector; c < columns; c += kGroup * kVector) {
      const Pack pack = *reinterpret_cast<const Pack*>(row + c);
#pragma unroll
      for (int i = 0; i < kVector; ++i) each(c + i, static_cast<float>(pack.value[i]));
    }
  } else {
    for (long long c = lane; c < columns; c += kGroup) each(c, static_cast<float>(row[c]));
  }
#endif
}

__device__ float* scratch() {
  __shared__ float part[kThreads * @PITCH@];
  return part;
}

template <class Join>
__device__ float reduce(float value, Join join) {
  if (kGroup == 1) return value;
  if (kGroup == 32) {
    for (int offset = 16; offset > 0; offset /= 2)
      value = join(value, __shfl_xor_sync(0xffffffffu, value, offset));
    return value;
  }
  float* const part = scratch();
  const int me = threadIdx.x;
  __syncthreads();
  part[me * @PITCH@] = value;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (me < half) part[me * @PITCH@] = join(part[me * @PITCH@], part[(me + half) * @PITCH@]);
    __syncthreads();
  }
  return part[0];
}

__device__ float sum_of(float value) {
  return reduce(value, [](float a, float b) { return a + b; });
}
__device__ float most_of(float value) {
  return reduce(value, [](float a, float b) { return fmaxf(a, b); });
}

extern "C" __global__ void @NAME@(@PARAMETERS@, long long rows, long long columns) {
  const int lane = threadIdx.x % kGroup;
  for (long long r = static_cast<long long>(blockIdx.x) * kRows + threadIdx.x / kGroup; r < rows;
       r += static_cast<long long>(gridDim.x) * kRows) {
    const T* const row = x + r * columns;
@BODY@
  }
}
"""

ROW_OPS = {
    "row_sum": dict(
        axes=("rows", "columns"),
        parameters="const T* __restrict__ x, T* __restrict__ y",
        args=["x", "y"],
        body="""
    float sum = 0;
    visit(row, columns, lane, [&](long long, float v) { sum += v; });
    sum = sum_of(sum);
    if (lane == 0) y[r] = T(sum);
""",
    ),
    "softmax": dict(
        axes=("rows", "columns"),
        parameters="const T* __restrict__ x, T* __restrict__ y",
        args=["x", "y"],
        body="""
    float most = static_cast<float>(row[0]);
    visit(row, columns, lane, [&](long long, float v) { most = fmaxf(most, v); });
    most = most_of(most);
    float sum = 0;
    visit(row, columns, lane, [&](long long, float v) { sum += expf(v - most); });
    sum = sum_of(sum);
    T* const out = y + r * columns;
    visit(row, columns, lane, [&](long long c, float v) { out[c] = T(expf(v - most) / sum); });
""",
    ),
    "rms_norm": dict(
        axes=("tokens", "hidden"),
        parameters="const T* __restrict__ x, const T* __restrict__ weight, float eps, T* __restrict__ y",
        args=["x", "weight", "eps", "y"],
        body="""
    float sum = 0;
    visit(row, columns, lane, [&](long long, float v) { sum += v * v; });
    sum = sum_of(sum);
    const float scale = rsqrtf(sum / static_cast<float>(columns) + eps);
    T* const out = y + r * columns;
    visit(row, columns, lane, [&](long long c, float v) {
      out[c] = T(v * scale * static_cast<float>(weight[c]));
    });
""",
    ),
    "layer_norm": dict(
        axes=("tokens", "hidden"),
        parameters="const T* __restrict__ x, const T* __restrict__ weight, const T* __restrict__ bias, "
        "float eps, T* __restrict__ y",
        args=["x", "weight", "bias", "eps", "y"],
        body="""
    float sum = 0;
    visit(row, columns, lane, [&](long long, float v) { sum += v; });
    const float mean = sum_of(sum) / static_cast<float>(columns);
    float square = 0;
    visit(row, columns, lane, [&](long long, float v) { square += (v - mean) * (v - mean); });
    const float scale = rsqrtf(sum_of(square) / static_cast<float>(columns) + eps);
    T* const out = y + r * columns;
    visit(row, columns, lane, [&](long long c, float v) {
      out[c] = T((v - mean) * scale * static_cast<float>(weight[c]) + static_cast<float>(bias[c]));
    });
""",
    ),
    "cross_entropy": dict(
        axes=("tokens", "vocab"),
        parameters="const T* __restrict__ x, const long long* __restrict__ targets, float* __restrict__ y",
        args=["logits", "targets", "loss"],
        body="""
    float most = static_cast<float>(row[0]);
    visit(row, columns, lane, [&](long long, float v) { most = fmaxf(most, v); });
    most = most_of(most);
    float sum = 0;
    visit(row, columns, lane, [&](long long, float v) { sum += expf(v - most); });
    sum = sum_of(sum);
    if (lane == 0) y[r] = logf(sum) + most - static_cast<float>(row[targets[r]]);
""",
    ),
}

# name: threads, group, vector, chunked, pitch, dynamic shared bytes, most blocks (0: no limit)
ROW_WAYS = {
    "thread_a_row": (128, 1, 1, 0, 1, 0, 0),
    "warp_a_row": (256, 32, 1, 0, 1, 0, 0),
    "warp_a_row_by_4": (256, 32, 4, 0, 1, 0, 0),
    "warp_a_row_small_blocks": (32, 32, 1, 0, 1, 0, 0),
    "warp_a_row_chunks": (256, 32, 1, 1, 1, 0, 0),
    "block_a_row": (256, 256, 1, 0, 1, 0, 0),
    "block_a_row_by_8": (256, 256, 8, 0, 1, 0, 0),
    "block_a_row_by_4_of_1024": (1024, 1024, 4, 0, 1, 0, 0),
    "block_a_row_of_64": (64, 64, 1, 0, 1, 0, 0),
    "block_a_row_in_banks": (256, 256, 1, 0, 32, 0, 0),
    "block_a_row_alone": (256, 256, 1, 0, 1, 200 * 1024, 0),
    "few_blocks": (256, 256, 1, 0, 1, 0, 32),
}

TILED = """
constexpr int kTile = @TILE@;

extern "C" __global__ void gemm(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ c,
                                long long m, long long n, long long k) {
  __shared__ float left[kTile][kTile + @PAD@];
  __shared__ float right[kTile][kTile + @PAD@];
  const int x = threadIdx.x, y = threadIdx.y;
  const long long row = static_cast<long long>(blockIdx.y) * kTile + y;
  const long long column = static_cast<long long>(blockIdx.x) * kTile + x;
  float sum = 0;
  for (long long at = 0; at < k; at += kTile) {
    left[@STORE@] = row < m && at + x < k ? static_cast<float>(a[row * k + at + x]) : 0.0f;
    right[y][x] = column < n && at + y < k ? static_cast<float>(b[(at + y) * n + column]) : 0.0f;
    __syncthreads();
    for (int i = 0; i < kTile; ++i) sum += left[@LOAD@] * right[i][x];
    __syncthreads();
  }
  if (row < m && column < n) c[row * n + column] = T(sum);
}
"""

REGISTERS = """
constexpr int kTile = @TILE@;
constexpr int kEach = @EACH@;
constexpr int kDepth = 8;
constexpr int kSide = kTile / kEach;
constexpr int kThreads = kSide * kSide;

extern "C" __global__ void __launch_bounds__(kThreads)
    gemm(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ c, long long m, long long n,
         long long k) {
  __shared__ float left[kDepth][kTile];
  __shared__ float right[kDepth][kTile];
  const int x = threadIdx.x % kSide, y = threadIdx.x / kSide;
  const long long top = static_cast<long long>(blockIdx.y) * kTile;
  const long long start = static_cast<long long>(blockIdx.x) * kTile;
  float sum[kEach][kEach] = {};
  for (long long at = 0; at < k; at += kDepth) {
    for (int i = threadIdx.x; i < kTile * kDepth; i += kThreads) {
      const int r = i / kDepth, d = i % kDepth;
      left[d][r] = top + r < m && at + d < k ? static_cast<float>(a[(top + r) * k + at + d]) : 0.0f;
    }
    for (int i = threadIdx.x; i < kTile * kDepth; i += kThreads) {
      const int d = i / kTile, q = i % kTile;
      right[d][q] =
          start + q < n && at + d < k ? static_cast<float>(b[(at + d) * n + start + q]) : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int d = 0; d < kDepth; ++d) {
      float p[kEach], q[kEach];
#pragma unroll
      for (int i = 0; i < kEach; ++i) p[i] = left[d][@ROW@];
#pragma unroll
      for (int i = 0; i < kEach; ++i) q[i] = right[d][@COLUMN@];
#pragma unroll
      for (int i = 0; i < kEach; ++i)
#pragma unroll
        for (int j = 0; j < kEach; ++j) sum[i][j] += p[i] * q[j];
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < kEach; ++i)
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const int jj = j;
      const long long row = top + (@ROW@);
      const long long column = start + (@STORE_COLUMN@);
      if (row < m && column < n) c[row * n + column] = T(sum[i][jj]);
    }
}
"""

PLAIN = """
extern "C" __global__ void gemm(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ c,
                                long long m, long long n, long long k) {
  const long long row = static_cast<long long>(blockIdx.@ROW@) * blockDim.@ROW@ + threadIdx.@ROW@;
  const long long column = static_cast<long long>(blockIdx.@COLUMN@) * blockDim.@COLUMN@ + threadIdx.@COLUMN@;
  if (row >= m || column >= n) return;
  float sum = 0;
  for (long long i = 0; i < k; ++i)
    sum += static_cast<float>(a[row * k + i]) * static_cast<float>(b[i * n + column]);
  c[row * n + column] = T(sum);
}
"""

WMMA = """#include <mma.h>

constexpr int kWarps = @WARPS@;
constexpr int kEach = @EACH@;  // Tiles of 16 columns a warp.

extern "C" __global__ void gemm(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ c,
                                long long m, long long n, long long k) {
  using namespace nvcuda;
  __shared__ float out[kWarps][16 * 16];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const long long row = (static_cast<long long>(blockIdx.y) * kWarps + warp) * 16;
  const long long column = static_cast<long long>(blockIdx.x) * 16 * kEach;
  if (row >= m) return;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[kEach];
  for (int i = 0; i < kEach; ++i) wmma::fill_fragment(sum[i], 0.0f);
  for (long long at = 0; at < k; at += 16) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> left;
    wmma::load_matrix_sync(left, a + row * k + at, static_cast<unsigned>(k));
    for (int i = 0; i < kEach; ++i) {
      wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::row_major> right;
      wmma::load_matrix_sync(right, b + at * n + column + 16 * i, static_cast<unsigned>(n));
      wmma::mma_sync(sum[i], left, right, sum[i]);
    }
  }
  for (int i = 0; i < kEach; ++i) {
    wmma::store_matrix_sync(out[warp], sum[i], 16, wmma::mem_row_major);
    __syncwarp();
    for (int e = lane; e < 256; e += 32)
      c[(row + e / 16) * n + column + 16 * i + e % 16] = T(out[warp][e]);
    __syncwarp();
  }
}
"""

ADAMW = """
constexpr int kVector = @VECTOR@;

struct alignas(kVector * sizeof(T)) Pack {
  T value[kVector];
};
struct alignas(kVector * sizeof(float)) Floats {
  float value[kVector];
};

extern "C" __global__ void adamw(T* __restrict__ param, const T* __restrict__ grad,
                                 float* __restrict__ m, float* __restrict__ v, float rate, float beta1,
                                 float beta2, float decay, float eps, float correction1,
                                 float correction2, long long n) {
  const long long threads = static_cast<long long>(gridDim.x) * blockDim.x;
  const long long me = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  const long long packs = n / kVector;
#if @CHUNKED@
  const long long part = (packs + threads - 1) / threads;
  for (long long at = me * part; at < (me + 1) * part && at < packs; ++at) {
#else
  for (long long at = me; at < packs; at += threads) {
#endif
    Pack p = reinterpret_cast<Pack*>(param)[at];
    const Pack g = reinterpret_cast<const Pack*>(grad)[at];
    Floats first = reinterpret_cast<Floats*>(m)[at];
    Floats second = reinterpret_cast<Floats*>(v)[at];
#pragma unroll
    for (int i = 0; i < kVector; ++i) {
      const float slope = static_cast<float>(g.value[i]);
      first.value[i] = beta1 * first.value[i] + (1 - beta1) * slope;
      second.value[i] = beta2 * second.value[i] + (1 - beta2) * slope * slope;
      const float step = first.value[i] / correction1 / (sqrtf(second.value[i] / correction2) + eps);
      const float old = static_cast<float>(p.value[i]);
      p.value[i] = T(old - rate * (step + decay * old));
    }
    reinterpret_cast<Pack*>(param)[at] = p;
    reinterpret_cast<Floats*>(m)[at] = first;
    reinterpret_cast<Floats*>(v)[at] = second;
  }
}
"""


def fill(template: str, **values: object) -> str:
    for key, value in values.items():
        template = template.replace(f"@{key}@", str(value))
    return template


def kernel(entry: str, grid: list, block: list, args: list[str], shared: int = 0) -> dict:
    row = {"entry": entry, "grid": grid, "block": block, "args": args}
    if shared:
        row["shared_bytes"] = shared
    return row


def row_variants() -> dict[tuple[str, str], tuple[str, dict]]:
    made = {}
    for op, row in ROW_OPS.items():
        rows, columns = row["axes"]
        for name, (threads, group, vector, chunked, pitch, shared, most) in ROW_WAYS.items():
            source = fill(
                HEAD + ROWS,
                THREADS=threads,
                GROUP=group,
                VECTOR=vector,
                CHUNKED=chunked,
                PITCH=pitch,
                NAME=op,
                PARAMETERS=row["parameters"],
                BODY=row["body"],
            )
            blocks = f"ceil_div({rows}, {threads // group})"
            if most:
                blocks = f"min({blocks}, {most})"
            made[op, name] = source, kernel(op, [blocks], [threads], row["args"] + [rows, columns], shared)
    return made


def gemm_variants() -> dict[tuple[str, str], tuple[str, dict]]:
    made = {}
    args = ["a", "b", "c", "m", "n", "k"]
    for tile in (8, 16, 32):
        source = fill(HEAD + TILED, TILE=tile, PAD=0, STORE="y][x", LOAD="y][i")
        grid = [f"ceil_div(n, {tile})", f"ceil_div(m, {tile})"]
        made["gemm", f"tiles_of_{tile}"] = source, kernel("gemm", grid, [tile, tile], args)
    for pad in (0, 1):
        source = fill(HEAD + TILED, TILE=32, PAD=pad, STORE="x][y", LOAD="i][y")
        grid = ["ceil_div(n, 32)", "ceil_div(m, 32)"]
        name = "turned_tiles" + ("_padded" if pad else "")
        made["gemm", name] = source, kernel("gemm", grid, [32, 32], args)
    for tile, each in ((64, 4), (128, 8)):
        for name, place in (("near", "{} * kEach + {}"), ("spread", "{} + kSide * {}")):
            source = fill(
                HEAD + REGISTERS,
                TILE=tile,
                EACH=each,
                ROW=place.format("y", "i"),
                COLUMN=place.format("x", "i"),
                STORE_COLUMN=place.format("x", "jj"),
            )
            grid = [f"ceil_div(n, {tile})", f"ceil_div(m, {tile})"]
            made["gemm", f"registers_{each}_by_{each}_{name}"] = source, kernel(
                "gemm", grid, [(tile // each) ** 2], args
            )
    for name, row, column, grid in (
        ("plain", "y", "x", ["ceil_div(n, 32)", "ceil_div(m, 8)"]),
        ("plain_turned", "x", "y", ["ceil_div(m, 32)", "ceil_div(n, 8)"]),
    ):
        source = fill(HEAD + PLAIN, ROW=row, COLUMN=column)
        made["gemm", name] = source, kernel("gemm", grid, [32, 8], args)
    for warps, each in ((1, 1), (4, 1), (4, 4)):
        source = HEAD.replace("\nusing T", "\nusing T", 1) + fill(WMMA, WARPS=warps, EACH=each)
        grid = [f"ceil_div(n, {16 * each})", f"ceil_div(m, {16 * warps})"]
        made["gemm", f"wmma_{warps}_warps_by_{each}"] = source, kernel("gemm", grid, [32 * warps], args)
    return made


def adamw_variants() -> dict[tuple[str, str], tuple[str, dict]]:
    args = ["param", "grad", "m", "v", "rate", "beta1", "beta2", "decay", "eps"]
    args += ["correction1", "correction2", "n"]
    made = {}
    for name, vector, chunked, threads, grid in (
        ("one_each", 1, 0, 256, "ceil_div(n, 256)"),
        ("four_each", 4, 0, 256, "ceil_div(n, 1024)"),
        ("four_each_of_1024", 4, 0, 1024, "ceil_div(n, 4096)"),
        ("chunks", 1, 1, 256, "ceil_div(n, 4096)"),
        ("chunks_of_fours", 4, 1, 256, "ceil_div(n, 16384)"),
        ("few_blocks", 1, 0, 256, "64"),
        ("few_blocks_by_four", 4, 0, 256, "64"),
        ("blocks_of_32", 1, 0, 32, "ceil_div(n, 32)"),
    ):
        source = fill(HEAD + ADAMW, VECTOR=vector, CHUNKED=chunked)
        made["adamw", name] = source, kernel("adamw", [int(grid) if grid.isdigit() else grid], [threads], args)
    return made


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    root = Path(sys.argv[1])
    for (op, name), (source, launch) in {**row_variants(), **gemm_variants(), **adamw_variants()}.items():
        folder = root / op / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "kernel.cu").write_text(source)
        plan = {"schema": "assay.launch/1", "kernels": [launch]}
        (folder / "launch.json").write_text(json.dumps(plan, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
