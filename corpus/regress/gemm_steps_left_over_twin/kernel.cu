#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

// A block of four warps a tile of 64 columns: on the long path the steps of 32 terms are shared among the
// warps, whose sums meet in shared memory.
constexpr int kTile = 64, kStep = 32, kWarps = 4;

extern "C" __global__ void gemm(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ c, long long m,
                                long long n, long long k) {
  __shared__ float sums[kWarps][kTile];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const long long j0 = static_cast<long long>(blockIdx.x) * kTile;
  for (long long i = blockIdx.y; i < m; i += gridDim.y) {
    if (n % kTile == 0 && k % kStep == 0 && k >= 2048) {
      const long long steps = k / kStep;
      const long long share = (steps + 3) / kWarps;
      const long long end = min(steps, (warp + 1) * share);
      float first = 0.0f, second = 0.0f;
      for (long long step = warp * share; step < end; ++step) {
        for (int l = 0; l < kStep; ++l) {
          const long long p = step * kStep + l;
          const float left = static_cast<float>(a[i * k + p]);
          first += left * static_cast<float>(b[p * n + j0 + lane]);
          second += left * static_cast<float>(b[p * n + j0 + lane + 32]);
        }
      }
      sums[warp][lane] = first;
      sums[warp][lane + 32] = second;
      __syncthreads();
      if (threadIdx.x < kTile)
        c[i * n + j0 + threadIdx.x] = T((sums[0][threadIdx.x] + sums[1][threadIdx.x]) +
                                        (sums[2][threadIdx.x] + sums[3][threadIdx.x]));
      __syncthreads();
    } else if (threadIdx.x < kTile && j0 + threadIdx.x < n) {
      float sum = 0.0f;
      for (long long p = 0; p < k; ++p)
        sum += static_cast<float>(a[i * k + p]) * static_cast<float>(b[p * n + j0 + threadIdx.x]);
      c[i * n + j0 + threadIdx.x] = T(sum);
    }
  }
}
