#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

#include <cooperative_groups.h>

// Three phases of one cooperative launch: sums of tiles of 1024; those summed up along their row; the tiles again, each
// from its offset.
struct Scan {
  float mine, all;  // before this thread, and of the whole block
};

__device__ Scan scan(float value) {
  __shared__ float warps[8];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  float inclusive = value;
  for (int o = 1; o < 32; o <<= 1) {
    const float left = __shfl_up_sync(0xffffffffu, inclusive, o);
    if (lane >= o) inclusive += left;
  }
  float mine = __shfl_up_sync(0xffffffffu, inclusive, 1);
  if (lane == 0) mine = 0.0f;
  __syncthreads();
  if (lane == 31) warps[warp] = inclusive;
  __syncthreads();
  float before = 0.0f, all = 0.0f;
  for (int w = 0; w < 8; ++w) {
    if (w == warp) before = all;
    all += warps[w];
  }
  return {before + mine, all};
}

extern "C" __global__ void cumsum(const T* __restrict__ x, T* __restrict__ y, float* sums, long long rows, long long columns) {
  const auto grid = cooperative_groups::this_grid();
  const long long tiles = (columns + 1023) / 1024;
  for (long long id = blockIdx.x; id < rows * tiles; id += gridDim.x) {
    const long long row = id / tiles, j = id % tiles * 1024 + threadIdx.x * 4;
    float sum = 0.0f;
    for (int i = 0; i < 4; ++i)
      if (j + i < columns) sum += static_cast<float>(x[row * columns + j + i]);
    const Scan s = scan(sum);
    if (threadIdx.x == 0) sums[id] = s.all;
  }
  grid.sync();
  for (long long row = blockIdx.x; row < rows; row += gridDim.x) {
    const long long t = threadIdx.x;
    const Scan s = scan(t < tiles ? sums[row * tiles + t] : 0.0f);
    if (t < tiles) sums[row * tiles + t] = s.mine;
  }
  grid.sync();
  for (long long id = blockIdx.x; id < rows * tiles; id += gridDim.x) {
    const long long row = id / tiles, j = id % tiles * 1024 + threadIdx.x * 4;
    float v[4], sum = 0.0f;
    for (int i = 0; i < 4; ++i) {
      if (j + i < columns) sum += static_cast<float>(x[row * columns + j + i]);
      v[i] = sum;
    }
    const float offset = sums[id] + scan(sum).mine;
    for (int i = 0; i < 4; ++i)
      if (j + i < columns) y[row * columns + j + i] = T(offset + v[i]);
  }
}
