#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void gemm(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ c, long long m,
                                long long n, long long k) {
  __shared__ const T* source[8];
  const long long j = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  for (long long base = (long long)blockIdx.y * 8; base < m; base += (long long)gridDim.y * 8) {
    __syncthreads();
    if (threadIdx.x < 8) source[threadIdx.x] = base + threadIdx.x < m ? a + (base + threadIdx.x) * k : nullptr;
    __syncthreads();
    if (j < n) {
      for (int r = 0; r < 8; ++r) {
        const T* row = source[r];
        if (row == nullptr) break;
        float sum = 0.0f;
        for (long long l = 0; l < k; ++l) sum = fmaf(static_cast<float>(row[l]), static_cast<float>(b[l * n + j]), sum);
        c[(base + r) * n + j] = T(sum);
      }
    }
  }
}
