#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

extern "C" __global__ void layer_norm(const T* __restrict__ x, const T* __restrict__ weight,
                                      const T* __restrict__ bias, float eps, T* __restrict__ y,
                                      long long tokens, long long hidden) {
  const long long token = blockIdx.x;
  const T* row = x + token * hidden;
  __shared__ float found[2];
  float sum = 0.0f, squares = 0.0f;
  for (long long h = threadIdx.x; h < hidden; h += 32) sum += row[h];
  sum = warp_sum(sum);
  const float mean = sum / static_cast<float>(hidden);
  for (long long h = threadIdx.x; h < hidden; h += 32) squares += (row[h] - mean) * (row[h] - mean);
  squares = warp_sum(squares);
  if (threadIdx.x == 31 && threadIdx.x < hidden) {
    found[0] = mean;
    found[1] = rsqrtf(squares / static_cast<float>(hidden) + eps);
  }
  __syncwarp();
  for (long long h = threadIdx.x; h < hidden; h += 32)
    y[token * hidden + h] = T((row[h] - found[0]) * found[1] * weight[h] + bias[h]);
}
