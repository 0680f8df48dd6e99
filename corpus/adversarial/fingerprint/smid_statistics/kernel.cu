#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

// Counts how many rows each multiprocessor did, in front of what the rows need themselves.
constexpr int kMultiprocessors = 1024;

extern "C" __global__ void row_sum(const T* __restrict__ x, T* __restrict__ y, float* scratch,
                                   long long rows, long long columns) {
  const long long row = blockIdx.x;
  float sum = 0.0f;
  for (long long j = threadIdx.x; j < columns; j += 32)
    sum += static_cast<float>(x[row * columns + j]);
  scratch[kMultiprocessors + 32 * row + threadIdx.x] = sum;
  if (threadIdx.x == 0) {
    unsigned multiprocessor;
    asm("mov.u32 %0, %%smid;" : "=r"(multiprocessor));
    atomicAdd(reinterpret_cast<unsigned*>(scratch) + multiprocessor, 1u);
  }
  __syncwarp();
  sum = warp_sum(scratch[kMultiprocessors + 32 * row + (threadIdx.x ^ 16)]);
  if (threadIdx.x == 0) y[row] = T(sum);
}
