#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

constexpr int kThreads = 256;
constexpr int kChunk = 4096;

extern "C" __global__ void __launch_bounds__(kThreads)
    add_chunks(const T* __restrict__ x, float* sums, long long rows, long long columns) {
  __shared__ float of_warp[kThreads / 32];
  const long long begin = static_cast<long long>(blockIdx.x) * kChunk;
  const long long end = begin + kChunk < columns ? begin + kChunk : columns;
  for (long long row = blockIdx.y; row < rows; row += gridDim.y) {
    const T* from = x + row * columns;
    float sum = 0.0f;
#pragma unroll 4
    for (long long j = begin + threadIdx.x; j < end; j += kThreads)
      sum += static_cast<float>(from[j]);
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
      for (int w = 1; w < kThreads / 32; ++w) sum += of_warp[w];
      atomicAdd(&sums[row], sum);
    }
    __syncthreads();
  }
}

extern "C" __global__ void store(const float* __restrict__ sums, T* __restrict__ y,
                                 long long rows) {
  const long long row = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row < rows) y[row] = T(sums[row]);
}
