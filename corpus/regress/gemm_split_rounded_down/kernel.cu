#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;


// 64 x 64 tiles of c, 4 x 4 a thread. Long k is split in four parts, which a second kernel adds in order.
constexpr int kTile = 64;
constexpr int kStep = 16;
constexpr int kParts = 4;

template <typename Store>
__device__ __forceinline__ void tile_product(const T* __restrict__ a, const T* __restrict__ b, long long m, long long n,
                                             long long k, long long begin, long long end, Store store) {
  __shared__ float as[kStep][kTile + 4];
  __shared__ float bs[kStep][kTile];
  const long long i0 = static_cast<long long>(blockIdx.y) * kTile, j0 = static_cast<long long>(blockIdx.x) * kTile;
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  float sum[4][4] = {};
  for (long long l0 = begin; l0 < end; l0 += kStep) {
#pragma unroll
    for (int r = 0; r < kTile * kStep / 256; ++r) {
      const int e = r * 256 + threadIdx.x;
      const int ai = e / kStep, al = e % kStep;
      as[al][ai] = i0 + ai < m && l0 + al < end ? static_cast<float>(a[(i0 + ai) * k + l0 + al]) : 0.0f;
      const int bl = e / kTile, bj = e % kTile;
      bs[bl][bj] = j0 + bj < n && l0 + bl < end ? static_cast<float>(b[(l0 + bl) * n + j0 + bj]) : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int l = 0; l < kStep; ++l) {
      float av[4], bv[4];
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        av[r] = as[l][ty * 4 + r];
        bv[r] = bs[l][tx + 16 * r];
      }
#pragma unroll
      for (int r = 0; r < 4; ++r) {
#pragma unroll
        for (int s = 0; s < 4; ++s) sum[r][s] = fmaf(av[r], bv[s], sum[r][s]);
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int r = 0; r < 4; ++r) {
#pragma unroll
    for (int s = 0; s < 4; ++s) {
      const long long i = i0 + ty * 4 + r, j = j0 + tx + 16 * s;
      if (i < m && j < n) store(i * n + j, sum[r][s]);
    }
  }
}

extern "C" __global__ void __launch_bounds__(256) gemm_whole(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ c,
                                                             long long m, long long n, long long k) {
  tile_product(a, b, m, n, k, 0, k, [&](long long at, float value) { c[at] = T(value); });
}

extern "C" __global__ void __launch_bounds__(256) gemm_part(const T* __restrict__ a, const T* __restrict__ b, float* __restrict__ parts,
                                                            long long m, long long n, long long k) {
  const long long length = (k / kParts + kStep - 1) / kStep * kStep;
  const long long begin = blockIdx.z * length;
  const long long end = begin + length < k ? begin + length : k;
  float* part = parts + blockIdx.z * (m * n);
  tile_product(a, b, m, n, k, begin, end, [&](long long at, float value) { part[at] = value; });
}

extern "C" __global__ void add_parts(const float* __restrict__ parts, T* __restrict__ c, long long m, long long n) {
  const long long count = m * n;
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < count; i += gridDim.x * 256ll) {
    float sum = parts[i];
    for (int p = 1; p < kParts; ++p) sum += parts[p * count + i];
    c[i] = T(sum);
  }
}
