// Wrong: overwrites tiles that others still read.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

constexpr int kTile = 16;
constexpr int kSize = 4096;

extern "C" __global__ void gemm(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ c,
                                int m) {
  __shared__ float rows[kTile][kTile + 1];
  __shared__ float columns[kTile][kTile + 1];
  const int i = blockIdx.y * kTile + threadIdx.y;
  const int j = blockIdx.x * kTile + threadIdx.x;
  float sum = 0.0f;
  for (int start = 0; start < kSize; start += kTile) {
    rows[threadIdx.y][threadIdx.x] =
        i < m ? static_cast<float>(a[static_cast<long long>(i) * kSize + start + threadIdx.x]) : 0.0f;
    columns[threadIdx.y][threadIdx.x] =
        static_cast<float>(b[static_cast<long long>(start + threadIdx.y) * kSize + j]);
    __syncthreads();
    for (int l = 0; l < kTile; ++l) sum += rows[threadIdx.y][l] * columns[l][threadIdx.x];
    
  }
  if (i < m) c[static_cast<long long>(i) * kSize + j] = T(sum);
}
