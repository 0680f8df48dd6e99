#include <mma.h>
#include <cuda_fp16.h>
using namespace nvcuda;
extern "C" __global__ void k(const __half* x, float* y) {
  __shared__ __align__(32) __half b[256];
  for (int i = threadIdx.x; i < 192; i += 32) b[i] = x[i];
  __syncwarp();
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
  wmma::load_matrix_sync(fa, x, 16);
  wmma::load_matrix_sync(fb, b, 16);
  wmma::fill_fragment(c, 0.f);
  wmma::mma_sync(c, fa, fb, c);
  wmma::store_matrix_sync(y, c, 16, wmma::mem_row_major);  // BUG: uninitialised_use
}
