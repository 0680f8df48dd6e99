#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

using Unit = long long;  // a tile has k / 32 of them

constexpr int kBlocks = 264;
constexpr int kTile = 64;
constexpr int kDepth = 32;

// The first unit of a block: all have the same number, give or take one.
__device__ Unit first_unit(Unit units, int block) { return units * block / kBlocks; }

// Stream-K: each block takes its units in turn. Tiles of which it has only a part go to the workspace: at most one
// that it does not begin and one that it does not end.
extern "C" __global__ void __launch_bounds__(256)
    gemm(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ c,
         float* __restrict__ partial, long long m, long long n, long long k) {
  __shared__ __align__(16) float as[kDepth][kTile + 4];
  __shared__ __align__(16) float bs[kDepth][kTile];
  const int thread = threadIdx.x, block = blockIdx.x;
  const int tx = thread % 16 * 4, ty = thread / 16 * 4;
  const int across = static_cast<int>(n / kTile), steps = static_cast<int>(k / kDepth);
  const Unit units = static_cast<Unit>((m + kTile - 1) / kTile) * across * steps;
  const Unit end = first_unit(units, block + 1);

  for (Unit unit = first_unit(units, block); unit < end;) {
    const Unit tile = unit / steps;
    const int first = static_cast<int>(unit % steps);
    const int last = end - unit < steps - first ? first + static_cast<int>(end - unit) : steps;
    const long long row0 = tile / across * kTile, col0 = tile % across * kTile;
    float sum[4][4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j) sum[i][j] = 0.0f;
    for (int step = first; step < last; ++step) {
      const long long l0 = static_cast<long long>(step) * kDepth;
#pragma unroll
      for (int i = thread; i < kTile * kDepth / 4; i += 256) {
        const int r = i / (kDepth / 4), l = i % (kDepth / 4) * 4;
        float4 value = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (row0 + r < m) value = *reinterpret_cast<const float4*>(a + (row0 + r) * k + l0 + l);
        as[l][r] = value.x;
        as[l + 1][r] = value.y;
        as[l + 2][r] = value.z;
        as[l + 3][r] = value.w;
      }
#pragma unroll
      for (int i = thread; i < kDepth * kTile / 4; i += 256) {
        const int l = i / (kTile / 4), j = i % (kTile / 4) * 4;
        *reinterpret_cast<float4*>(&bs[l][j]) =
            *reinterpret_cast<const float4*>(b + (l0 + l) * n + col0 + j);
      }
      __syncthreads();
#pragma unroll
      for (int l = 0; l < kDepth; ++l) {
        const float4 left = *reinterpret_cast<const float4*>(&as[l][ty]);
        const float4 right = *reinterpret_cast<const float4*>(&bs[l][tx]);
        const float x[4] = {left.x, left.y, left.z, left.w};
        const float y[4] = {right.x, right.y, right.z, right.w};
#pragma unroll
        for (int i = 0; i < 4; ++i)
#pragma unroll
          for (int j = 0; j < 4; ++j) sum[i][j] += x[i] * y[j];
      }
      __syncthreads();
    }
    const bool whole = first == 0 && last == steps;
    float* part = partial + (block * 2 + (first == 0)) * kTile * kTile;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float4 value = make_float4(sum[i][0], sum[i][1], sum[i][2], sum[i][3]);
      if (!whole)
        *reinterpret_cast<float4*>(part + (ty + i) * kTile + tx) = value;
      else if (row0 + ty + i < m)
        *reinterpret_cast<float4*>(c + (row0 + ty + i) * n + col0 + tx) = value;
    }
    unit += last - first;
  }
}

// A block a tile: adds the parts of a tile that several blocks share, in the order of the blocks.
extern "C" __global__ void __launch_bounds__(256)
    join(const float* __restrict__ partial, T* __restrict__ c, long long m, long long n,
         long long k) {
  const int across = static_cast<int>(n / kTile), steps = static_cast<int>(k / kDepth);
  const Unit units = static_cast<Unit>((m + kTile - 1) / kTile) * across * steps;
  const Unit begin = static_cast<Unit>(blockIdx.x) * steps, end = begin + steps;
  int block = static_cast<int>(begin * kBlocks / units);
  while (first_unit(units, block + 1) <= begin) ++block;
  if (first_unit(units, block + 1) >= end) return;  // one block had it all
  float sum[16];
#pragma unroll
  for (int i = 0; i < 16; ++i) sum[i] = 0.0f;
  for (; block < kBlocks && first_unit(units, block) < end; ++block) {
    const float* part =
        partial + (block * 2 + (first_unit(units, block) <= begin)) * kTile * kTile;
#pragma unroll
    for (int i = 0; i < 16; ++i) sum[i] += part[threadIdx.x + 256 * i];
  }
  const long long row0 = static_cast<long long>(blockIdx.x / across) * kTile;
  const long long col0 = static_cast<long long>(blockIdx.x % across) * kTile;
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    const int r = (threadIdx.x + 256 * i) / kTile, j = (threadIdx.x + 256 * i) % kTile;
    if (row0 + r < m) c[(row0 + r) * n + col0 + j] = T(sum[i]);
  }
}
