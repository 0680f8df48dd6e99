// A warp a row.
//
// launch: {"kernels": [{"entry": "matrix_vector", "grid": ["m"], "block": [32], "args": ["a", "x", "out", "k"]}]}
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float warp_sum(float x) {
  for (int far = 16; far > 0; far /= 2) x += __shfl_xor_sync(0xffffffffu, x, far);
  return x;
}

extern "C" __global__ void matrix_vector(const T* a, const T* x, T* out, long long k) {
  float sum = 0;
  for (long long j = threadIdx.x; j < k; j += 32)
    sum = fmaf(static_cast<float>(a[blockIdx.x * k + j]), static_cast<float>(x[j]), sum);  //~ tf32: sum = fmaf(__uint_as_float(__float_as_uint(static_cast<float>(a[blockIdx.x * k + j])) & 0xffffe000u), static_cast<float>(x[j]), sum);
  sum = warp_sum(sum);
  if (threadIdx.x == 0) out[blockIdx.x] = T(sum);
}
