// One warp a 16 x 16 tile of c: operands staged in shared memory with zeros beyond the edges, products on tensor cores with f32 sums.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;
using T = ASSAY_T;

constexpr int kTile = 16;

extern "C" __global__ void gemm_wmma(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ c,
                                     long long m, long long n, long long k) {
  __shared__ __align__(32) T tile_a[kTile * kTile];
  __shared__ __align__(32) T tile_b[kTile * kTile];
  __shared__ __align__(32) float tile_c[kTile * kTile];
  const long long j0 = static_cast<long long>(blockIdx.x) * kTile;
  for (long long i0 = static_cast<long long>(blockIdx.y) * kTile; i0 < m; i0 += static_cast<long long>(gridDim.y) * kTile) {
    wmma::fragment<wmma::accumulator, kTile, kTile, kTile, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    for (long long l0 = 0; l0 < k; l0 += kTile) {
      for (int e = threadIdx.x; e < kTile * kTile; e += 32) {
        const int row = e / kTile;
        const int column = e % kTile;
        tile_a[e] = i0 + row < m && l0 + column < k ? a[(i0 + row) * k + l0 + column] : T(0.0f);
        tile_b[e] = l0 + row < k && j0 + column < n ? b[(l0 + row) * n + j0 + column] : T(0.0f);
      }
      __syncwarp();
      wmma::fragment<wmma::matrix_a, kTile, kTile, kTile, T, wmma::row_major> fa;
      wmma::fragment<wmma::matrix_b, kTile, kTile, kTile, T, wmma::row_major> fb;
      wmma::load_matrix_sync(fa, tile_a, kTile);
      wmma::load_matrix_sync(fb, tile_b, kTile);
      wmma::mma_sync(sum, fa, fb, sum);
      __syncwarp();
    }
    wmma::store_matrix_sync(tile_c, sum, kTile, wmma::mem_row_major);
    __syncwarp();
    for (int e = threadIdx.x; e < kTile * kTile; e += 32) {
      const long long i = i0 + e / kTile;
      const long long j = j0 + e % kTile;
      if (i < m && j < n) c[i * n + j] = T(tile_c[e]);
    }
    __syncwarp();
  }
}
