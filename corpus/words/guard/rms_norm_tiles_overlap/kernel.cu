#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

extern "C" __global__ void rms_norm(const T* __restrict__ x, const T* __restrict__ weight,
                                    float eps, T* __restrict__ y, long long tokens,
                                    long long hidden) {
  const long long token = blockIdx.x;
  const T* row = x + token * hidden;
  __shared__ float parts[4];
  float squares = 0.0f;
  for (long long h = threadIdx.x; h < hidden; h += 128) squares += row[h] * row[h];
  squares = warp_sum(squares);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = squares;
  __syncthreads();
  const float scale =
      rsqrtf((parts[0] + parts[1] + parts[2] + parts[3]) / static_cast<float>(hidden) + eps);
  for (long long start = 0; start < hidden; start += 96) {
    const long long h = start + threadIdx.x;
    if (h < hidden) y[token * hidden + h] = T(row[h] * scale * weight[h]);
  }
}
