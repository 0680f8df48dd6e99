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

// The largest value over a block; every thread gets it.
__device__ float block_max(float value, float* partial) {
  for (int offset = 16; offset > 0; offset /= 2)
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, offset));
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  float largest = partial[0];
  for (int warp = 1; warp < kWarps; ++warp) largest = fmaxf(largest, partial[warp]);
  return largest;
}

extern "C" __global__ void softmax(const T* __restrict__ x, T* __restrict__ y, long long rows,
                                   long long columns) {
  __shared__ float peaks[kWarps], partial[kWarps];
  for (long long row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* in = x + row * columns;
    T* out = y + row * columns;
    float most = __int_as_float(0xff800000);  // -infinity
    for (long long j = threadIdx.x; j < columns; j += kThreads)
      most = fmaxf(most, static_cast<float>(in[j]));
    const float largest = block_max(most, peaks);
    float terms = 0.0f;
    for (long long j = threadIdx.x; j < columns; j += kThreads)
      terms += expf(static_cast<float>(in[j]) - largest);
    const float sum = block_sum(terms, partial);
    for (long long j = threadIdx.x; j < columns; j += kThreads)
      out[j] = T(expf(static_cast<float>(in[j]) - largest) / sum);
    __syncthreads();  // the next row comes into the same memory
  }
}
