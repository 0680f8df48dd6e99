#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

struct Row {
  const float* data;
  __device__ float operator[](long long h) const { return data[h]; }
  __device__ float2 pair(long long h) const { return reinterpret_cast<const float2*>(data)[h]; }
};

extern "C" __global__ void layer_norm(const T* __restrict__ x, const T* __restrict__ weight,
                                      const T* __restrict__ bias, float eps, T* __restrict__ y,
                                      long long tokens, long long hidden) {
  const long long token = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (token >= tokens) return;
  const T* row = x + token * hidden;
  float sum = 0.0f, squares = 0.0f;
  const Row values{row};
  for (long long h = threadIdx.x; h < hidden; h += 32) sum += values[h];
  const float mean = warp_sum(sum) / static_cast<float>(hidden);
  for (long long h = threadIdx.x; h < hidden / 2; h += 32) {
    const float2 pair = values.pair(h);
    squares += (pair.x - mean) * (pair.x - mean) + (pair.y - mean) * (pair.y - mean);
  }
  if (hidden % 2 == 1 && threadIdx.x == 0)
    squares += (values[hidden - 1] - mean) * (values[hidden - 1] - mean);
  const float scale = rsqrtf(warp_sum(squares) / static_cast<float>(hidden) + eps);
  for (long long h = threadIdx.x; h < hidden; h += 32)
    y[token * hidden + h] = T((values[h] - mean) * scale * weight[h] + bias[h]);
}
