// Honest: lanes keep Welford's moments, merged as Chan, Golub and LeVeque do.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

struct Moments {
  float count, mean, squares;
};

__device__ Moments Merged(const Moments& a, const Moments& b) {
  const float count = a.count + b.count;
  if (count == 0.0f) return a;
  const float delta = b.mean - a.mean;
  return {count, a.mean + delta * (b.count / count),
          a.squares + b.squares + delta * delta * (a.count * b.count / count)};
}

extern "C" __global__ void layer_norm(const T* x, const T* weight, const T* bias, float eps, T* y,
                                      long long tokens, long long hidden) {
  const long long token = blockIdx.x;
  const T* row = x + token * hidden;
  Moments moments = {0.0f, 0.0f, 0.0f};
  for (long long h = threadIdx.x; h < hidden; h += 32) {
    const float deviation = static_cast<float>(row[h]) - moments.mean;
    moments.count += 1.0f;
    moments.mean += deviation / moments.count;
    moments.squares += deviation * (static_cast<float>(row[h]) - moments.mean);
  }
  for (int step = 16; step > 0; step /= 2) {
    const Moments other = {__shfl_xor_sync(0xffffffffu, moments.count, step),
                           __shfl_xor_sync(0xffffffffu, moments.mean, step),
                           __shfl_xor_sync(0xffffffffu, moments.squares, step)};
    moments = Merged(moments, other);
  }
  // Lanes merge in different orders; one of them speaks for all.
  const float mean = __shfl_sync(0xffffffffu, moments.mean, 0);
  const float squares = __shfl_sync(0xffffffffu, moments.squares, 0);
  const float scale = rsqrtf(squares / static_cast<float>(hidden) + eps);
  for (long long h = threadIdx.x; h < hidden; h += 32) {
    y[token * hidden + h] =
        T((static_cast<float>(row[h]) - mean) * scale * static_cast<float>(weight[h]) +
          static_cast<float>(bias[h]));
  }
}
