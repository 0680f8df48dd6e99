// Four rows a block, eight lanes each; three sums in one pass.
//
// launch: {"kernels": [{"entry": "cosine_similarity", "grid": ["ceil_div(rows, 4)"], "block": [8, 4], "args": ["x", "y", "out", "rows", "columns"]}]}
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float eight_sum(float x) {
  for (int far = 4; far > 0; far /= 2) x += __shfl_xor_sync(0xffffffffu, x, far);
  return x;
}

extern "C" __global__ void cosine_similarity(const T* x, const T* y, T* out, long long rows, long long columns) {
  const long long row = blockIdx.x * 4ll + threadIdx.y;
  float dot = 0, left = 0, right = 0;
  for (long long j = threadIdx.x; row < rows && j < columns; j += 8) {
    const float a = static_cast<float>(x[row * columns + j]), b = static_cast<float>(y[row * columns + j]);
    dot = fmaf(a, b, dot);
    left = fmaf(a, a, left);  //~ half: left = __half2float(__float2half(fmaf(a, a, left)));
    right = fmaf(b, b, right);
  }
  dot = eight_sum(dot), left = eight_sum(left), right = eight_sum(right);
  if (row >= rows || threadIdx.x != 0) return;
  out[row] = T(dot / fmaxf(sqrtf(left) * sqrtf(right), 1e-8f));  //~ guard: out[row] = T(dot * rsqrtf(left * right));
}
