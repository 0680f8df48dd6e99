#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

constexpr int kWarps = 8;
constexpr int kChunk = 1024;
constexpr int kMostChunks = 1024;  // columns are at most 2^20

// One block a row. Warps take the next chunk as they become free, so that none waits for another's cache misses.
extern "C" __global__ void __launch_bounds__(32 * kWarps)
    row_sum(const T* __restrict__ x, T* __restrict__ y, long long columns) {
  __shared__ float of_chunk[kMostChunks];
  __shared__ int next;
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const T* row = x + blockIdx.x * columns;
  const int chunks = static_cast<int>((columns + kChunk - 1) / kChunk);
  if (threadIdx.x == 0) next = 0;
  __syncthreads();
  for (;;) {
    int chunk = 0;
    if (lane == 0) chunk = atomicAdd(&next, 1);
    chunk = __shfl_sync(0xffffffffu, chunk, 0);
    if (chunk >= chunks) break;
    const long long begin = static_cast<long long>(chunk) * kChunk;
    const long long end = begin + kChunk < columns ? begin + kChunk : columns;
    float sum = 0.0f;
#pragma unroll 4
    for (long long j = begin + lane; j < end; j += 32) sum += static_cast<float>(row[j]);
    sum = warp_sum(sum);
    if (lane == 0) of_chunk[chunk] = sum;
  }
  __syncthreads();
  if (warp == 0) {
    float sum = 0.0f;
    for (int c = lane; c < chunks; c += 32) sum += of_chunk[c];
    sum = warp_sum(sum);
    if (lane == 0) y[blockIdx.x] = T(sum);
  }
}
