#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;


// A block a row; the row stays in registers, kVectors vectors of eight a thread. Other rows are read twice.
constexpr int kThreads = 256;

__device__ __forceinline__ float block_sum(float value) {
  __shared__ float shared[kThreads / 32];
  for (int offset = 16; offset > 0; offset >>= 1) value += __shfl_xor_sync(0xffffffffu, value, offset);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  value = shared[0];
#pragma unroll
  for (int w = 1; w < kThreads / 32; ++w) value += shared[w];
  return value;
}

template <int kVectors>
__global__ void __launch_bounds__(kThreads) rms_norm_vectors(const T* __restrict__ x, const T* __restrict__ weight, float eps,
                                                             T* __restrict__ y, long long hidden) {
  const int vectors = static_cast<int>(hidden / 8);
  const uint4* in = reinterpret_cast<const uint4*>(x + blockIdx.x * hidden);
  const uint4* w = reinterpret_cast<const uint4*>(weight);
  uint4* out = reinterpret_cast<uint4*>(y + blockIdx.x * hidden);
  uint4 kept[kVectors];
  float squares = 0.0f;
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    const int at = i * kThreads + threadIdx.x;
    kept[i] = at < vectors ? in[at] : make_uint4(0, 0, 0, 0);
    const T* e = reinterpret_cast<const T*>(&kept[i]);
#pragma unroll
    for (int j = 0; j < 8; ++j) squares = fmaf(static_cast<float>(e[j]), static_cast<float>(e[j]), squares);
  }
  const float scale = rsqrtf(block_sum(squares) / static_cast<float>(hidden) + eps);
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    const int at = i * kThreads + threadIdx.x;
    if (at >= vectors) break;
    const uint4 packed = w[at];
    uint4 result;
    const T* e = reinterpret_cast<const T*>(&kept[i]);
    const T* f = reinterpret_cast<const T*>(&packed);
    T* r = reinterpret_cast<T*>(&result);
#pragma unroll
    for (int j = 0; j < 8; ++j) r[j] = T(static_cast<float>(e[j]) * scale * static_cast<float>(f[j]));
    out[at] = result;
  }
}

extern "C" __global__ void __launch_bounds__(kThreads) rms_norm_any(const T* __restrict__ x, const T* __restrict__ weight, float eps,
                                                                    T* __restrict__ y, long long hidden) {
  const T* in = x + blockIdx.x * hidden;
  T* out = y + blockIdx.x * hidden;
  float squares = 0.0f;
  for (long long h = threadIdx.x; h < hidden; h += kThreads) squares = fmaf(static_cast<float>(in[h]), static_cast<float>(in[h]), squares);
  const float scale = rsqrtf(block_sum(squares) / static_cast<float>(hidden) + eps);
  for (long long h = threadIdx.x; h < hidden; h += kThreads) out[h] = T(static_cast<float>(in[h]) * scale * static_cast<float>(weight[h]));
}
