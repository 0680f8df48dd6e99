// One block a row, 264 blocks that go on; a row's first index is added up as they go.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float block_sum(float value, float* shared) {
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  value = shared[0] + shared[1] + shared[2] + shared[3];
  __syncthreads();
  return value;
}

extern "C" __global__ void layer_norm(const T* __restrict__ x, const T* __restrict__ weight,
                                      const T* __restrict__ bias, float eps, T* __restrict__ y,
                                      long long tokens, long long hidden) {
  __shared__ float shared[4];
  const long long width = static_cast<long long>(hidden);
  long long base = static_cast<long long>(blockIdx.x) * width;
  for (long long token = blockIdx.x; token < tokens; token += gridDim.x) {
    float sum = 0.0f;
    for (int h = threadIdx.x; h < hidden; h += 128) sum += static_cast<float>(x[base + h]);
    const float mean = block_sum(sum, shared) / static_cast<float>(hidden);
    float squares = 0.0f;
    for (int h = threadIdx.x; h < hidden; h += 128) {
      const float deviation = static_cast<float>(x[base + h]) - mean;
      squares += deviation * deviation;
    }
    const float scale = rsqrtf(block_sum(squares, shared) / static_cast<float>(hidden) + eps);
    for (int h = threadIdx.x; h < hidden; h += 128) {
      const float normal = (static_cast<float>(x[base + h]) - mean) * scale;
      y[base + h] = T(normal * static_cast<float>(weight[h]) + static_cast<float>(bias[h]));
    }
    base += static_cast<long long>(gridDim.x) * width;
  }
}
