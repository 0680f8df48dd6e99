// A warp a row; what is masked is never read into the sum.
//
// launch: {"kernels": [{"entry": "masked_softmax", "grid": ["rows"], "block": [32], "args": ["x", "mask", "out", "columns"]}]}
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

extern "C" __global__ void masked_softmax(const T* x, const bool* mask, T* out, long long columns) {
  const long long row = blockIdx.x * columns;
  float top = -INFINITY, sum = 0;
  for (long long j = threadIdx.x; j < columns; j += 32)
    if (j == 0 || mask[row + j]) top = fmaxf(top, static_cast<float>(x[row + j]));  //~ first: if (mask[row + j]) top = fmaxf(top, static_cast<float>(x[row + j]));
  top = warp_max(top);
  for (long long j = threadIdx.x; j < columns; j += 32)
    if (j == 0 || mask[row + j]) sum += expf(static_cast<float>(x[row + j]) - top);  //~ leak: sum += expf(static_cast<float>(x[row + j]) - top);
  const float scale = 1.0f / warp_sum(sum);
  for (long long j = threadIdx.x; j < columns; j += 32)
    out[row + j] = T(j == 0 || mask[row + j] ? expf(static_cast<float>(x[row + j]) - top) * scale : 0.0f);
}
