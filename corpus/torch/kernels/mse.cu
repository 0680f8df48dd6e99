// One block; a thread a part of all elements.
//
// launch: {"kernels": [{"entry": "mse", "grid": ["1"], "block": [256], "args": ["x", "y", "out", "rows", "columns"]}]}
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float warp_sum(float x) {
  for (int far = 16; far > 0; far /= 2) x += __shfl_xor_sync(0xffffffffu, x, far);
  return x;
}

extern "C" __global__ void mse(const T* x, const T* y, T* out, long long rows, long long columns) {
  __shared__ float parts[8];
  const long long n = rows * columns;
  float sum = 0;
  for (long long i = threadIdx.x; i < n; i += 256) {
    const float apart = static_cast<float>(x[i]) - static_cast<float>(y[i]);
    sum += apart * apart;  //~ absolute: sum += fabsf(apart);
  }
  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int warp = 1; warp < 8; ++warp) sum += parts[warp];
    out[0] = T(sum / static_cast<float>(n));
  }
}
