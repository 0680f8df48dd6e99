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

extern "C" __global__ void rms_norm(const T* __restrict__ x, const T* __restrict__ weight, float eps,
                                    T* __restrict__ y, long long rows, long long columns) {
  __shared__ float partial[kWarps];
  for (long long row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* in = x + row * columns;
    T* out = y + row * columns;
    float squares = 0.0f;
    for (long long j = threadIdx.x; j < columns; j += kThreads) {
      const float value = static_cast<float>(in[j]);
      squares += value * value;
    }
    const float sum = block_sum(squares, partial);
    const float scale = rsqrtf(sum / static_cast<float>(columns) + eps);
    for (long long j = threadIdx.x; j < columns; j += kThreads)
      out[j] = T(static_cast<float>(in[j]) * scale * static_cast<float>(weight[j]));
    __syncthreads();  // the next row comes into the same memory
  }
}
