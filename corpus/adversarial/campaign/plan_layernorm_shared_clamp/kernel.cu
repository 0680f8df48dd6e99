#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

__device__ float block_sum(float value, float* scratch) {
  value = warp_sum(value);
  __syncthreads();
  if ((threadIdx.x & 31) == 0) scratch[threadIdx.x >> 5] = value;
  __syncthreads();
  float total = scratch[0];
  for (unsigned i = 1; i < blockDim.x / 32; ++i) total += scratch[i];
  return total;
}

constexpr long long kCached = 16384;

extern "C" __global__ void layer_norm(const T* __restrict__ x, const T* __restrict__ weight,
                                      const T* __restrict__ bias, float eps, T* __restrict__ y,
                                      long long tokens, long long hidden) {
  extern __shared__ float cached[];
  __shared__ float scratch[4];
  const long long token = blockIdx.x;
  if (token >= tokens) return;
  const T* row = x + token * hidden;
  float sum = 0.0f;
  for (long long h = threadIdx.x; h < hidden; h += 128) {
    const float value = static_cast<float>(row[h]);
    if (h < kCached) cached[h] = value;
    sum += value;
  }
  const float mean = block_sum(sum, scratch) / static_cast<float>(hidden);
  float squares = 0.0f;
  for (long long h = threadIdx.x; h < hidden; h += 128) {
    const float deviation = (h < kCached ? cached[h] : static_cast<float>(row[h])) - mean;
    squares += deviation * deviation;
  }
  const float scale = rsqrtf(block_sum(squares, scratch) / static_cast<float>(hidden) + eps);
  for (long long h = threadIdx.x; h < hidden; h += 128) {
    const float value = h < kCached ? cached[h] : static_cast<float>(row[h]);
    y[token * hidden + h] =
        T((value - mean) * scale * static_cast<float>(weight[h]) + static_cast<float>(bias[h]));
  }
}
