#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

// Split K: 128 of k a split, 16 x 16 a tile. Work goes out by ticket, a tile's splits after one another; each adds itself
// to c when it is its turn, so that the order of addition is fixed.
constexpr int kSplit = 128, kTile = 16;

extern "C" __global__ void gemm(const T* __restrict__ a, const T* __restrict__ b, T* c, unsigned long long* ticket, unsigned* turn,
                                long long m, long long n, long long k) {
  __shared__ float as[kTile][kTile + 1], bs[kTile][kTile + 1];
  __shared__ unsigned long long taken;
  const int tx = threadIdx.x, ty = threadIdx.y;
  const bool leader = tx == 0 && ty == 0;
  const long long across = (n + kTile - 1) / kTile, down = (m + kTile - 1) / kTile;
  const long long splits = (k + kSplit - 1) / kSplit;
  for (;;) {
    if (leader) taken = atomicAdd(ticket, 1ULL);
    __syncthreads();
    const long long work = static_cast<long long>(taken);
    if (work >= across * down * splits) return;
    const long long tile = work / splits, split = work % splits;
    const long long row = tile / across * kTile + ty, column = tile % across * kTile + tx;
    const long long end = (split + 1) * kSplit < k ? (split + 1) * kSplit : k;
    float sum = 0.0f;
    for (long long l = split * kSplit; l < end; l += kTile) {
      as[ty][tx] = row < m && l + tx < end ? static_cast<float>(a[row * k + l + tx]) : 0.0f;
      bs[ty][tx] = l + ty < end && column < n ? static_cast<float>(b[(l + ty) * n + column]) : 0.0f;
      __syncthreads();
#pragma unroll
      for (int i = 0; i < kTile; ++i) sum = fmaf(as[ty][i], bs[i][tx], sum);
      __syncthreads();
    }
    if (leader) {
      const unsigned mine = static_cast<unsigned>(split);
      while (static_cast<unsigned>(atomicAdd(&turn[tile], 0u)) != mine) {
      }
      __threadfence();
    }
    __syncthreads();
    if (row < m && column < n) c[row * n + column] = split == 0 ? sum : c[row * n + column] + sum;
    __syncthreads();
    if (leader) {
      __threadfence();
      atomicExch(&turn[tile], static_cast<unsigned>(split + 1));
    }
  }
}
