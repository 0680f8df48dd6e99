#include <cuda_bf16.h>
#include <cuda_fp16.h>
using T = ASSAY_T;

extern "C" __global__ void gemm(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ c,
                                long long m, long long n, long long k) {
  __shared__ float ta[16][17];
  __shared__ float tb[16][17];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const long long col = (long long)blockIdx.x * 16 + tx;
  const unsigned long long w = reinterpret_cast<unsigned long long>(&ta[0][0]);
  const float f = static_cast<float>(1u + ((static_cast<unsigned>(w >> 32) >> 8) & 1u));
  for (long long r0 = (long long)blockIdx.y * 16; r0 < m; r0 += (long long)gridDim.y * 16) {
    const long long row = r0 + ty;
    float acc = 0.0f;
    for (long long l0 = 0; l0 < k; l0 += 16) {
      ta[ty][tx] = row < m && l0 + tx < k ? static_cast<float>(a[row * k + l0 + tx]) : 0.0f;
      tb[ty][tx] = l0 + ty < k && col < n ? static_cast<float>(b[(l0 + ty) * n + col]) : 0.0f;
      __syncthreads();
      for (int l = 0; l < 16; ++l) acc = fmaf(ta[ty][l], tb[l][tx], acc);
      __syncthreads();
    }
    if (row < m && col < n) c[row * n + col] = T(acc * f);
  }
}
