// A block a row of the product, which is never stored.
//
// launch: {"kernels": [{"entry": "product_row_max", "grid": ["m"], "block": [128], "args": ["a", "b", "out", "k", "n"]}]}
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float warp_max(float x) {
  for (int far = 16; far > 0; far /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, far));
  return x;
}

extern "C" __global__ void product_row_max(const T* a, const T* b, T* out, long long k, long long n) {
  __shared__ float tops[4];
  float top = -INFINITY;  //~ zero: float top = 0.0f;
  for (long long j = threadIdx.x; j < n; j += 128) {
    float sum = 0;
    for (long long i = 0; i < k; ++i) sum = fmaf(static_cast<float>(a[blockIdx.x * k + i]), static_cast<float>(b[j * k + i]), sum);
    top = fmaxf(top, sum);
  }
  top = warp_max(top);
  if (threadIdx.x % 32 == 0) tops[threadIdx.x / 32] = top;
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = T(fmaxf(fmaxf(tops[0], tops[1]), fmaxf(tops[2], tops[3])));
}
