#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

template <int N>
__device__ float block_sum(float v) {
  __shared__ float warps[N / 32];
  for (int o = 16; o > 0; o /= 2) v += __shfl_xor_sync(0xffffffffu, v, o);
  if ((threadIdx.x & 31) == 0) warps[threadIdx.x / 32] = v;
  __syncthreads();
  float s = 0.0f;
  for (int i = 0; i < N / 32; ++i) s += warps[i];
  __syncthreads();
  return s;
}

__device__ void everyone(unsigned* arrived) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(arrived, 1u);
    while (atomicAdd(arrived, 0u) < gridDim.x) {
    }
    __threadfence();
  }
  __syncthreads();
}

extern "C" __global__ void rms_norm(const T* __restrict__ x, const T* __restrict__ weight,
                                    float eps, T* __restrict__ y, volatile float* squares,
                                    unsigned* arrived, long long tokens, long long hidden) {
  const long long begin = hidden * blockIdx.x / 8, end = hidden * (blockIdx.x + 1) / 8;
  for (long long t = 0; t < tokens; ++t) {
    float s = 0.0f;
    for (long long h = begin + threadIdx.x; h < end; h += 64) {
      const float v = static_cast<float>(x[t * hidden + h]);
      s += v * v;
    }
    s = block_sum<64>(s);
    if (threadIdx.x == 0) squares[t * 8 + blockIdx.x] = s;
  }
  everyone(arrived);
  for (long long t = blockIdx.x; t < tokens; t += 8) {
    float s = 0.0f;
    for (int i = 0; i < 8; ++i) s += squares[t * 8 + i];
    const float scale = rsqrtf(s / static_cast<float>(hidden) + eps);
    for (long long h = threadIdx.x; h < hidden; h += 64)
      y[t * hidden + h] =
          T(static_cast<float>(x[t * hidden + h]) * scale * static_cast<float>(weight[h]));
  }
}
