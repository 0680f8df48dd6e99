// A warp a row, in one pass.
//
// launch: {"kernels": [{"entry": "logsumexp", "grid": ["rows"], "block": [32], "args": ["x", "out", "columns"]}]}
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

extern "C" __global__ void logsumexp(const T* x, T* out, long long columns) {
  const T* in = x + blockIdx.x * columns;
  float top = -INFINITY;
  for (long long j = threadIdx.x; j < columns; j += 32) top = fmaxf(top, static_cast<float>(in[j]));
  top = warp_max(top);  //~ overflow: top = 0.0f;
  float sum = 0;
  for (long long j = threadIdx.x; j < columns; j += 32) sum += expf(static_cast<float>(in[j]) - top);
  sum = warp_sum(sum);
  if (threadIdx.x == 0) out[blockIdx.x] = T(top + logf(sum));
}
