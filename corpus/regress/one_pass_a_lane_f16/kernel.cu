#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

// One warp a row: every lane keeps count, mean and squares of its elements, lanes merge by Chan's formula.
struct Moments {
  float count, mean, squares;
};

__device__ Moments merge(Moments a, Moments b) {
  const float count = a.count + b.count;
  if (count == 0.0f) return a;
  const float delta = b.mean - a.mean;
  const float share = b.count / count;
  return {count, a.mean + delta * share, a.squares + b.squares + delta * delta * a.count * share};
}

extern "C" __global__ void __launch_bounds__(128) layer_norm(const T* __restrict__ x,
    const T* __restrict__ weight, const T* __restrict__ bias, float eps, T* __restrict__ y,
    long long tokens, int hidden) {
  const long long token = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (token >= tokens) return;
  const T* row = x + token * hidden;
  const int lane = threadIdx.x;
  Moments mine{0.0f, 0.0f, 0.0f};
  for (int h = lane; h < hidden; h += 32) {
    const float value = static_cast<float>(row[h]);
    mine.count += 1.0f;
    mine.mean += value;
    mine.squares += value * value;
  }
  if (mine.count > 0.0f) {
    const float sum = mine.mean;
    mine.mean = sum / mine.count;
    mine.squares = fmaxf(mine.squares - sum * mine.mean, 0.0f);
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    const Moments other{__shfl_down_sync(0xffffffffu, mine.count, offset),
                        __shfl_down_sync(0xffffffffu, mine.mean, offset),
                        __shfl_down_sync(0xffffffffu, mine.squares, offset)};
    mine = merge(mine, other);
  }
  const float mean = __shfl_sync(0xffffffffu, mine.mean, 0);
  const float squares = __shfl_sync(0xffffffffu, mine.squares, 0);
  const float scale = rsqrtf(squares / static_cast<float>(hidden) + eps);
  for (int h = lane; h < hidden; h += 32) {
    const float normal = (static_cast<float>(row[h]) - mean) * scale;
    y[token * hidden + h] = T(normal * static_cast<float>(weight[h]) + static_cast<float>(bias[h]));
  }
}
