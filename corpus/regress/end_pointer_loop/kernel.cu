#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float block_sum(float v) {
  __shared__ float part[32];
  __syncthreads();
  for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
  if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = v;
  __syncthreads();
  float total = 0.0f;
  for (int w = 0; w < (int)(blockDim.x >> 5); ++w) total += part[w];
  return total;
}

extern "C" __global__ void __launch_bounds__(128)
row_sum(const T* __restrict__ x, T* __restrict__ y, long long rows, long long columns) {
  const long long row = blockIdx.x;
  const T* const end = x + (row + 1) * columns;
  float s = 0.0f;
  if (threadIdx.x < columns) {
    const T* p = x + row * columns + threadIdx.x;
    while (p < end) {
      s += static_cast<float>(*p);
      if (end - p <= (long long)blockDim.x) break;
      p += blockDim.x;
    }
  }
  s = block_sum(s);
  if (threadIdx.x == 0) y[row] = T(s);
}
