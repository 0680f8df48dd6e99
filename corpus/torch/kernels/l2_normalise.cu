// A warp a row.
//
// launch: {"kernels": [{"entry": "l2_normalise", "grid": ["rows"], "block": [32], "args": ["x", "out", "columns"]}]}
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float warp_sum(float x) {
  for (int far = 16; far > 0; far /= 2) x += __shfl_xor_sync(0xffffffffu, x, far);
  return x;
}

extern "C" __global__ void l2_normalise(const T* x, T* out, long long columns) {
  const T* in = x + blockIdx.x * columns;
  float squares = 0;
  for (long long j = threadIdx.x; j < columns; j += 32) squares += static_cast<float>(in[j]) * static_cast<float>(in[j]);
  const float length = fmaxf(sqrtf(warp_sum(squares)), 1e-6f);  //~ guard: const float length = fmaxf(sqrtf(warp_sum(squares)), 1e-12f);
  for (long long j = threadIdx.x; j < columns; j += 32) out[blockIdx.x * columns + j] = T(static_cast<float>(in[j]) / length);
}
