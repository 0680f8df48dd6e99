// Tiles of 16 x 16 in shared memory, a batch a layer of blocks.
//
// launch: {"kernels": [{"entry": "batched_product", "grid": ["ceil_div(n, 16)", "ceil_div(m, 16)", "batch"], "block": [16, 16], "args": ["a", "b", "out", "m", "k", "n"]}]}
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void batched_product(const T* a, const T* b, T* out, long long m, long long k, long long n) {
  __shared__ float left[16][17], right[16][17];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const long long row = blockIdx.y * 16ll + ty, column = blockIdx.x * 16ll + tx;
  a += blockIdx.z * m * k;
  b += blockIdx.z * k * n;
  out += blockIdx.z * m * n;
  float sum = 0;
  for (long long from = 0; from < k; from += 16) {
    left[ty][tx] = row < m && from + tx < k ? static_cast<float>(a[row * k + from + tx]) : 0.0f;
    right[ty][tx] = column < n && from + ty < k ? static_cast<float>(b[(from + ty) * n + column]) : 0.0f;  //~ tail: right[ty][tx] = column < n ? static_cast<float>(b[(from + ty) * n + column]) : 0.0f;
    __syncthreads();
    for (int i = 0; i < 16; ++i) sum = fmaf(left[ty][i], right[i][tx], sum);  //~ precision: for (int i = 0; i < 16; ++i) sum = static_cast<float>(__hadd(__float2half(left[ty][i] * right[i][tx]), __float2half(sum)));
    __syncthreads();
  }
  if (row < m && column < n) out[row * n + column] = T(sum);
}
