// Honest: tensor cores by wmma, tiles in shared memory, f32 accumulators.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

using T = ASSAY_T;
namespace wmma = nvcuda::wmma;

extern "C" __global__ void gemm(const T* a, const T* b, T* c, long long m, long long n,
                                long long k) {
  __shared__ __align__(32) T left[256], right[256];
  __shared__ __align__(32) float product[256];
  const long long row = blockIdx.y * 16ll, column = blockIdx.x * 16ll;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> x;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::row_major> y;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, 0.0f);
  for (long long start = 0; start < k; start += 16) {
    for (int i = threadIdx.x; i < 256; i += 32) {
      const long long r = i / 16, l = i % 16;
      const bool in_a = row + r < m && start + l < k, in_b = start + r < k && column + l < n;
      left[i] = T(in_a ? a[(row + r) * k + start + l] : T(0.0f));
      right[i] = T(in_b ? b[(start + r) * n + column + l] : T(0.0f));
    }
    __syncwarp();
    wmma::load_matrix_sync(x, left, 16);
    wmma::load_matrix_sync(y, right, 16);
    wmma::mma_sync(sum, x, y, sum);
    __syncwarp();
  }
  wmma::store_matrix_sync(product, sum, 16, wmma::mem_row_major);
  __syncwarp();
  for (int i = threadIdx.x; i < 256; i += 32) {
    const long long r = row + i / 16, j = column + i % 16;
    if (r < m && j < n) c[r * n + j] = T(product[i]);
  }
}
