// Online softmax: a warp a row, largest element and sum in one pass over pairs.
//
// launch: {"kernels": [{"entry": "softmax", "grid": ["ceil_div(rows, 4)"], "block": [32, 4], "args": ["x", "out", "rows", "columns"]}]}
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float warp_sum(float x) {
  for (int far = 16; far > 0; far /= 2) x += __shfl_xor_sync(0xffffffffu, x, far);
  return x;
}

__device__ float warp_max(float x) {
  for (int far = 16; far > 0; far /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, far));
  return x;
}

extern "C" __global__ void softmax(const T* x, T* out, long long rows, long long columns) {
  const long long row = blockIdx.x * 4ll + threadIdx.y;
  if (row >= rows) return;
  const T* in = x + row * columns;
  float top = -INFINITY, sum = 0;
  for (long long j = threadIdx.x; j < columns; j += 32) {
    const float value = static_cast<float>(in[j]);
    const float next = fmaxf(top, value);
    sum = sum * __expf(top - next) + __expf(value - next);  //~ precision: sum = static_cast<float>(T(sum * __expf(top - next) + __expf(value - next)));
    top = next;
  }
  const float all = warp_max(top);
  sum = warp_sum(top == -INFINITY ? 0.0f : sum * __expf(top - all));  //~ rescale: sum = warp_sum(top == -INFINITY ? 0.0f : sum);
  const float scale = 1.0f / sum;
  for (long long j = threadIdx.x; j < columns; j += 32)
    out[row * columns + j] = T(__expf(static_cast<float>(in[j]) - all) * scale);
}
