// Right: a block a row, at most 65,535 blocks, which take further rows in turns.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / 32;

// The sum over a block; every thread gets it. `partial` is free again behind the next barrier.
__device__ float block_sum(float value, float* partial) {
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  float sum = 0.0f;
  for (int warp = 0; warp < kWarps; ++warp) sum += partial[warp];
  return sum;
}

extern "C" __global__ void layer_norm(const T* __restrict__ x, const T* __restrict__ weight,
                                      const T* __restrict__ bias, float eps, T* __restrict__ y,
                                      long long rows, long long columns) {
  __shared__ float partial[kWarps], spread[kWarps];
  for (long long row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* in = x + row * columns;
    T* out = y + row * columns;
    float terms = 0.0f;
    for (long long j = threadIdx.x; j < columns; j += kThreads) terms += static_cast<float>(in[j]);
    const float mean = block_sum(terms, partial) / static_cast<float>(columns);
    float squares = 0.0f;
    for (long long j = threadIdx.x; j < columns; j += kThreads) {
      const float deviation = static_cast<float>(in[j]) - mean;
      squares += deviation * deviation;
    }
    const float variance = block_sum(squares, spread) / static_cast<float>(columns);
    const float scale = rsqrtf(variance + eps);
    for (long long j = threadIdx.x; j < columns; j += kThreads) {
      const float normal = (static_cast<float>(in[j]) - mean) * scale;
      out[j] = T(normal * static_cast<float>(weight[j]) + static_cast<float>(bias[j]));
    }
    __syncthreads();  // the next row comes into the same memory
  }
}
