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

template <bool Squares>
__device__ void slice_of(const T* x, const float* sums, float* out, long long hidden) {
  const long long t = blockIdx.x / 4;
  const int part = blockIdx.x % 4;
  float mean = 0.0f;
  if (Squares)
    mean = ((sums[t * 4] + sums[t * 4 + 1]) + (sums[t * 4 + 2] + sums[t * 4 + 3])) / static_cast<float>(hidden);
  const long long end = hidden * (part + 1) / 4;
  float s = 0.0f;
  for (long long h = hidden * part / 4 + threadIdx.x; h < end; h += 64) {
    const float d = static_cast<float>(x[t * hidden + h]) - mean;
    s += Squares ? d * d : d;
  }
  s = block_sum<64>(s);
  if (threadIdx.x == 0) out[t * 4 + part] = s;
}

extern "C" __global__ void sum_up(const T* x, float* sums, long long hidden) {
  slice_of<false>(x, nullptr, sums, hidden);
}
extern "C" __global__ void square_up(const T* x, const float* sums, float* squares, long long hidden) {
  slice_of<true>(x, sums, squares, hidden);
}
extern "C" __global__ void normalise(const T* x, const T* weight, const T* bias, float eps, T* y,
                                     const float* sums, const float* squares, long long hidden) {
  const long long t = blockIdx.x;
  const float4 a = reinterpret_cast<const float4*>(sums)[t];
  const float4 b = reinterpret_cast<const float4*>(squares)[t];
  const float mean = ((a.x + a.y) + (a.z + a.w)) / static_cast<float>(hidden);
  const float scale = rsqrtf(((b.x + b.y) + (b.z + b.w)) / static_cast<float>(hidden) + eps);
  for (long long h = threadIdx.x; h < hidden; h += 128)
    y[t * hidden + h] = T((static_cast<float>(x[t * hidden + h]) - mean) * scale * static_cast<float>(weight[h]) +
                          static_cast<float>(bias[h]));
}
