#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

// Where a tile lies in shared memory: cores of 8 by 8 elements, 128 bytes each, 128 bytes apart along k
// and 256 across it.
__device__ unsigned long long described(const T* tile) {
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(tile));
  return (at & 0x3ffff) >> 4 | (128ull >> 4) << 16 | (256ull >> 4) << 32;
}

// A warpgroup a tile of 64 by 8, sixteen products of each element a step.
extern "C" __global__ void gemm(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ c,
                                long long m, long long n, long long k) {
  __shared__ __align__(128) T left[64 * 16];
  __shared__ __align__(128) T right[8 * 16];
  const long long i0 = blockIdx.y * 64ll, j0 = blockIdx.x * 8ll;
  const int thread = threadIdx.x;
  float d[4] = {};
  for (long long start = 0; start < k && (start == 0 || start + 16 < k); start += 16) {
    for (int e = thread; e < 64 * 16; e += 128) {
      const int i = e / 16, l = e % 16;
      const bool inside = i0 + i < m && start + l < k;
      left[i / 8 * 128 + l / 8 * 64 + i % 8 * 8 + l % 8] = inside ? a[(i0 + i) * k + start + l] : T(0.0f);
    }
    const int j = thread % 8, l = thread / 8;
    const bool inside = j0 + j < n && start + l < k;
    right[l / 8 * 64 + j * 8 + l % 8] = inside ? b[(start + l) * n + j0 + j] : T(0.0f);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "l"(described(left)), "l"(described(right)));
    asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
    __syncthreads();
  }
  for (int e = 0; e < 4; ++e) {
    const long long i = i0 + thread / 32 * 16 + e / 2 * 8 + thread % 32 / 4;
    const long long j = j0 + thread % 4 * 2 + e % 2;
    if (i < m && j < n) c[i * n + j] = T(d[e]);
  }
}
