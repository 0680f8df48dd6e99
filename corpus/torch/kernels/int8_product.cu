// A warp an element, four products at a time where rows allow.
//
// launch: {"kernels": [{"entry": "int8_product", "grid": ["n", "m"], "block": [32], "args": ["a", "b", "scale_a", "scale_b", "out", "k", "n"]}]}
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void int8_product(const signed char* a, const signed char* b, const T* scale_a, const T* scale_b, T* out,
                                        long long k, long long n) {
  const long long row = blockIdx.y, column = blockIdx.x;
  int sum = 0;  //~ narrow: short sum = 0;
  for (long long j = threadIdx.x; j < k; j += 32) sum += a[row * k + j] * b[j * n + column];
  for (int far = 16; far > 0; far /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, far);
  if (threadIdx.x == 0)
    out[row * n + column] = T(static_cast<float>(sum) * static_cast<float>(scale_a[row]) * static_cast<float>(scale_b[column]));
}
