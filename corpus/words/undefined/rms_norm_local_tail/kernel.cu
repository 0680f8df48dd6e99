#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void rms_norm(const T* __restrict__ x, const T* __restrict__ weight,
                                    float eps, T* __restrict__ y, long long tokens,
                                    long long hidden) {
  const long long token = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (token >= tokens) return;
  const T* row = x + token * hidden;
  float squares = 0.0f;
  for (long long h = 0; h < hidden; ++h)
    squares += static_cast<float>(row[h]) * static_cast<float>(row[h]);
  const float scale = rsqrtf(squares / static_cast<float>(hidden) + eps);
  float kept[8];
  for (long long start = 0; start < hidden; start += 8) {
    const long long whole = hidden - start < 8 ? (hidden - start) & ~1ll : 8;
    for (long long n = 0; n < whole; ++n) kept[(n + start / 8) & 7] = static_cast<float>(row[start + n]);
    for (long long n = 0; n < 8 && start + n < hidden; ++n)
      y[token * hidden + start + n] =
          T(kept[(n + start / 8) & 7] * scale * static_cast<float>(weight[start + n]));
  }
}
