// Softmax, one block a row. Rows that fit are kept in shared memory; longer ones are read twice, once for a running
// maximum and sum, once to write.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kFits = 8192;

__device__ __forceinline__ float block_max(float value, float* shared) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2)
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, offset));
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  value = shared[0];
#pragma unroll
  for (int i = 1; i < kWarps; ++i) value = fmaxf(value, shared[i]);
  return value;
}

__device__ __forceinline__ float block_sum(float value, float* shared) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  value = 0.0f;
#pragma unroll
  for (int i = 0; i < kWarps; ++i) value += shared[i];
  return value;
}

extern "C" __global__ void __launch_bounds__(kThreads)
    softmax(const T* __restrict__ x, T* __restrict__ y, int columns) {
  __shared__ float kept[kFits];
  __shared__ float maxima[kWarps];
  __shared__ float sums[kWarps];
  const T* row = x + static_cast<long long>(blockIdx.x) * columns;
  T* out = y + static_cast<long long>(blockIdx.x) * columns;

  if (columns <= kFits) {
    float largest = -INFINITY;
    for (int j = threadIdx.x; j < columns; j += kThreads) {
      const float value = static_cast<float>(row[j]);
      kept[j] = value;
      largest = fmaxf(largest, value);
    }
    largest = block_max(largest, maxima);
    float sum = 0.0f;
    for (int j = threadIdx.x; j < columns; j += kThreads) {
      const float term = expf(kept[j] - largest);
      kept[j] = term;
      sum += term;
    }
    sum = block_sum(sum, sums);
    for (int j = threadIdx.x; j < columns; j += kThreads) out[j] = T(kept[j] / sum);
    return;
  }

  float most = -INFINITY;
  float sum = 0.0f;
  for (int j = threadIdx.x; j < columns; j += kThreads) {
    const float value = static_cast<float>(row[j]);
    const float next = fmaxf(most, value);
    sum = sum * expf(most - next) + expf(value - next);
    most = next;
  }
  const float largest = block_max(most, maxima);
  sum = block_sum(sum * expf(most - largest), sums);
  for (int j = threadIdx.x; j < columns; j += kThreads)
    out[j] = T(expf(static_cast<float>(row[j]) - largest) / sum);
}
