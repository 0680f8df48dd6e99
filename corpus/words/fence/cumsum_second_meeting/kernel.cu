#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

constexpr int kThreads = 256;
constexpr int kItems = 16;
constexpr int kChunk = kThreads * kItems;

// All blocks of the (cooperative) grid meet: `arrived` counts those that came, over all meetings.
__device__ __forceinline__ void meet(unsigned* arrived, unsigned until) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(arrived, 1u);
    while (atomicAdd(arrived, 0u) < until) {
    }
    __threadfence();
  }
  __syncthreads();
}

// The sum of a thread's items before it within the block, and the block's total.
__device__ __forceinline__ float scan_block(float own, float* of_warp, float& total) {
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  float scan = own;
#pragma unroll
  for (int offset = 1; offset < 32; offset *= 2) {
    const float left = __shfl_up_sync(0xffffffffu, scan, offset);
    if (lane >= offset) scan += left;
  }
  float before = __shfl_up_sync(0xffffffffu, scan, 1);
  if (lane == 0) before = 0.0f;
  if (lane == 31) of_warp[warp] = scan;
  __syncthreads();
  float warps_before = 0.0f;
  total = 0.0f;
#pragma unroll
  for (int w = 0; w < kThreads / 32; ++w) {
    if (w == warp) warps_before = total;
    total += of_warp[w];
  }
  __syncthreads();
  return before + warps_before;
}

// Sums of chunks, their prefixes within each row, then the chunks themselves.
extern "C" __global__ void __launch_bounds__(kThreads)
    cumsum(const T* __restrict__ x, T* __restrict__ y, float* of_chunk, unsigned* arrived,
           long long rows, long long columns) {
  __shared__ float of_warp[kThreads / 32];
  const long long chunks = (columns + kChunk - 1) / kChunk;
  for (long long id = blockIdx.x; id < rows * chunks; id += gridDim.x) {
    const T* from = x + id / chunks * columns;
    const long long first = id % chunks * kChunk + threadIdx.x * kItems;
    float own = 0.0f, total;
#pragma unroll
    for (int i = 0; i < kItems; ++i)
      if (first + i < columns) own += static_cast<float>(from[first + i]);
    scan_block(own, of_warp, total);
    if (threadIdx.x == 0) of_chunk[id] = total;
  }
  meet(arrived, gridDim.x);

  const long long thread = static_cast<long long>(blockIdx.x) * kThreads + threadIdx.x;
  for (long long row = thread; row < rows; row += static_cast<long long>(gridDim.x) * kThreads) {
    float carry = 0.0f;
    for (long long c = 0; c < chunks; ++c) {
      const float own = of_chunk[row * chunks + c];
      of_chunk[row * chunks + c] = carry;
      carry += own;
    }
  }
  meet(arrived, gridDim.x);

  for (long long id = blockIdx.x; id < rows * chunks; id += gridDim.x) {
    const T* from = x + id / chunks * columns;
    T* to = y + id / chunks * columns;
    const long long first = id % chunks * kChunk + threadIdx.x * kItems;
    float item[kItems];
    float own = 0.0f, total;
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      if (first + i < columns) own += static_cast<float>(from[first + i]);
      item[i] = own;
    }
    const float before = of_chunk[id] + scan_block(own, of_warp, total);
#pragma unroll
    for (int i = 0; i < kItems; ++i)
      if (first + i < columns) to[first + i] = T(before + item[i]);
  }
}
