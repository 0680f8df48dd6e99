// C = A * B in f16 on tensor cores. Where there are few tiles and k is long, blocks share a tile's k; the one that
// comes last adds the parts, in order.
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

constexpr int kTile = 64;
constexpr int kDepth = 32;
constexpr int kLeadA = kDepth + 8;
constexpr int kLeadB = kTile + 8;
constexpr int kLeadC = kTile + 4;
constexpr int kThreads = 128;

__device__ void load_a(__half* to, const __half* a, long long row0, long long l0, long long end,
                       long long m, long long k) {
  const __half zero = __float2half(0.0f);
  if (k % 8 == 0 && l0 + kDepth <= end) {
    for (int i = threadIdx.x; i < kTile * kDepth / 8; i += kThreads) {
      const int r = i / (kDepth / 8), l = i % (kDepth / 8) * 8;
      uint4 value = make_uint4(0, 0, 0, 0);
      if (row0 + r < m) value = *reinterpret_cast<const uint4*>(a + (row0 + r) * k + l0 + l);
      *reinterpret_cast<uint4*>(to + r * kLeadA + l) = value;
    }
  } else {
    for (int i = threadIdx.x; i < kTile * kDepth; i += kThreads) {
      const int r = i / kDepth, l = i % kDepth;
      to[r * kLeadA + l] = row0 + r < m && l0 + l < end ? a[(row0 + r) * k + l0 + l] : zero;
    }
  }
}

__device__ void load_b(__half* to, const __half* b, long long l0, long long end, long long col0,
                       long long n) {
  const __half zero = __float2half(0.0f);
  if (n % 8 == 0 && col0 + kTile <= n) {
    for (int i = threadIdx.x; i < kDepth * kTile / 8; i += kThreads) {
      const int l = i / (kTile / 8), j = i % (kTile / 8) * 8;
      uint4 value = make_uint4(0, 0, 0, 0);
      if (l0 + l < end) value = *reinterpret_cast<const uint4*>(b + (l0 + l) * n + col0 + j);
      *reinterpret_cast<uint4*>(to + l * kLeadB + j) = value;
    }
  } else {
    for (int i = threadIdx.x; i < kDepth * kTile; i += kThreads) {
      const int l = i / kTile, j = i % kTile;
      to[l * kLeadB + j] = l0 + l < end && col0 + j < n ? b[(l0 + l) * n + col0 + j] : zero;
    }
  }
}

extern "C" __global__ void __launch_bounds__(128)
    gemm(const __half* __restrict__ a, const __half* __restrict__ b, __half* __restrict__ c,
         float* partial, unsigned* done, long long m, long long n, long long k) {
  __shared__ __align__(128) __half as[kTile * kLeadA];
  __shared__ __align__(128) __half bs[kDepth * kLeadB];
  __shared__ __align__(128) float cs[kTile * kLeadC];
  __shared__ bool last;
  const long long across = (n + kTile - 1) / kTile;
  const long long tile = blockIdx.x;
  const long long row0 = tile / across * kTile, col0 = tile % across * kTile;
  const long long splits = gridDim.y, split = blockIdx.y;

  // Each split takes a whole number of steps.
  const long long share = (k + splits - 1) / splits;
  const long long chunk = (share + kDepth - 1) / kDepth * kDepth;
  const long long begin = split * chunk;
  const long long end = begin + chunk < k ? begin + chunk : k;

  const int warp = threadIdx.x / 32;
  const int wr = warp / 2 * 32, wc = warp % 2 * 32;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[2][2];
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j) wmma::fill_fragment(sum[i][j], 0.0f);

  for (long long l0 = begin; l0 < end; l0 += kDepth) {
    load_a(as, a, row0, l0, end, m, k);
    load_b(bs, b, l0, end, col0, n);
    __syncthreads();
#pragma unroll
    for (int l = 0; l < kDepth; l += 16) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> left[2];
      wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> right[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        wmma::load_matrix_sync(left[i], as + (wr + 16 * i) * kLeadA + l, kLeadA);
        wmma::load_matrix_sync(right[i], bs + l * kLeadB + wc + 16 * i, kLeadB);
      }
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 2; ++j) wmma::mma_sync(sum[i][j], left[i], right[j], sum[i][j]);
    }
    __syncthreads();
  }
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j)
      wmma::store_matrix_sync(cs + (wr + 16 * i) * kLeadC + wc + 16 * j, sum[i][j], kLeadC,
                              wmma::mem_row_major);
  __syncthreads();

  if (splits > 1) {
    float* parts = partial + tile * splits * (kTile * kTile);
    for (int i = threadIdx.x; i < kTile * kTile; i += kThreads)
      parts[split * (kTile * kTile) + i] = cs[i / kTile * kLeadC + i % kTile];
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(&done[tile], 1u) == splits - 1;
    __syncthreads();
    if (!last) return;
    __threadfence();
    for (int i = threadIdx.x; i < kTile * kTile; i += kThreads) {
      float total = 0.0f;
      for (long long s = 0; s < splits; ++s) total += __ldcg(parts + s * (kTile * kTile) + i);
      cs[i / kTile * kLeadC + i % kTile] = total;
    }
    __syncthreads();
  }
  for (int i = threadIdx.x; i < kTile * kTile; i += kThreads) {
    const int r = i / kTile, j = i % kTile;
    if (row0 + r < m && col0 + j < n)
      c[(row0 + r) * n + col0 + j] = __float2half(cs[r * kLeadC + j]);
  }
}
