// An element a thread.
//
// launch: {"kernels": [{"entry": "max_pool", "grid": ["ceil_div(batch * channels * ((x_2 - 1) / 2 + 1) * ((x_3 - 1) / 2 + 1), 128)"], "block": [128], "args": ["x", "out", "batch", "channels", "x_2", "x_3"]}]}
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void max_pool(const T* x, T* out, long long batch, long long channels, long long height, long long width) {
  const long long rows = (height - 1) / 2 + 1, columns = (width - 1) / 2 + 1;
  const long long i = blockIdx.x * 128ll + threadIdx.x;
  if (i >= batch * channels * rows * columns) return;
  const long long row = i / columns % rows, column = i % columns;
  const T* image = x + i / (rows * columns) * height * width;
  float top = -INFINITY;  //~ zero: float top = 0.0f;
  for (long long y = max(2 * row - 1, 0ll); y < min(2 * row + 2, height); ++y)
    for (long long z = max(2 * column - 1, 0ll); z < min(2 * column + 2, width); ++z)  //~ edge: for (long long z = max(2 * column - 1, 0ll); z < 2 * column + 2; ++z)
      top = fmaxf(top, static_cast<float>(image[y * width + z]));
  out[i] = T(top);
}
