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
rms_norm(const T* __restrict__ x, const T* __restrict__ weight, float eps, T* __restrict__ y, long long tokens,
         long long hidden) {
  for (long long row = blockIdx.x; row < tokens; row += gridDim.x) {
    const T* in = x + row * hidden;
    float q = 0.0f;
    for (long long h = threadIdx.x; h < hidden; h += blockDim.x) {
      const float v = static_cast<float>(in[h]);
      q += v * v;
    }
    const float inv = rsqrtf(block_sum(q) / static_cast<float>(hidden) + eps);
    for (long long h = threadIdx.x; h < hidden; h += blockDim.x)
      y[row * hidden + h] = T(static_cast<float>(in[h]) * inv * static_cast<float>(weight[h]));
  }
}
