// Rows of 4096 of bf16. Few rows: one at a time for a block. Many: four at a time, so that 128 bytes a thread are in
// flight and a barrier serves four rows.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = __nv_bfloat16;

constexpr int kHidden = 4096, kThreads = 256, kVectors = kHidden / 8 / kThreads;
constexpr int kTogether = 4, kMany = 8192;

__device__ __forceinline__ void unpack(uint4 bits, float* x) {
  const __nv_bfloat162* pairs = reinterpret_cast<const __nv_bfloat162*>(&bits);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 pair = __bfloat1622float2(pairs[i]);
    x[2 * i] = pair.x;
    x[2 * i + 1] = pair.y;
  }
}

// kRows rows from `row` on.
template <int kRows>
__device__ __forceinline__ void normalise(const T* __restrict__ x, const uint4 (&weight)[kVectors], float eps, T* __restrict__ y,
                                          long long row, float (&parts)[kTogether][kThreads / 32]) {
  uint4 held[kRows][kVectors];
#pragma unroll
  for (int r = 0; r < kRows; ++r)
#pragma unroll
    for (int i = 0; i < kVectors; ++i)
      held[r][i] = __ldcs(reinterpret_cast<const uint4*>(x + (row + r) * kHidden) + i * kThreads + threadIdx.x);
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    float squares = 0.0f;
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
      float v[8];
      unpack(held[r][i], v);
#pragma unroll
      for (int e = 0; e < 8; ++e) squares += v[e] * v[e];
    }
    for (int offset = 16; offset > 0; offset /= 2) squares += __shfl_xor_sync(0xffffffffu, squares, offset);
    if (threadIdx.x % 32 == 0) parts[r][threadIdx.x / 32] = squares;
  }
  __syncthreads();
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    float sum = 0.0f;
#pragma unroll
    for (int p = 0; p < kThreads / 32; ++p) sum += parts[r][p];
    const float scale = rsqrtf(sum / kHidden + eps);
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
      float v[8], w[8];
      unpack(held[r][i], v);
      unpack(weight[i], w);
      uint4 bits;
      __nv_bfloat162* pairs = reinterpret_cast<__nv_bfloat162*>(&bits);
#pragma unroll
      for (int e = 0; e < 4; ++e)
        pairs[e] = __floats2bfloat162_rn(v[2 * e] * scale * w[2 * e], v[2 * e + 1] * scale * w[2 * e + 1]);
      reinterpret_cast<uint4*>(y + (row + r) * kHidden)[i * kThreads + threadIdx.x] = bits;
    }
  }
  __syncthreads();
}

extern "C" __global__ void __launch_bounds__(kThreads) rms_norm(const T* __restrict__ x, const T* __restrict__ weight, float eps,
                                                                T* __restrict__ y, long long tokens) {
  __shared__ float parts[kTogether][kThreads / 32];
  uint4 w[kVectors];
#pragma unroll
  for (int i = 0; i < kVectors; ++i) w[i] = reinterpret_cast<const uint4*>(weight)[i * kThreads + threadIdx.x];
  const long long grid = gridDim.x;
  if (tokens >= kMany) {
    const long long groups = tokens / kTogether;
    for (long long group = blockIdx.x; group < groups; group += grid) normalise<kTogether>(x, w, eps, y, group * kTogether, parts);
    for (long long row = groups * kTogether + blockIdx.x; row < tokens; row += grid) normalise<1>(x, w, eps, y, row, parts);
  } else {
    for (long long row = blockIdx.x; row < tokens; row += grid) normalise<1>(x, w, eps, y, row, parts);
  }
}
