#include <mma.h>
#include <cuda_fp16.h>
using namespace nvcuda;
extern "C" __global__ void k(const __half* x, float* y) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
  wmma::load_matrix_sync(fa, x, 16);
  wmma::load_matrix_sync(fb, x, 16);
  wmma::mma_sync(c, fa, fb, c);
  wmma::store_matrix_sync(y, c, 16, wmma::mem_row_major);  // BUG: uninitialised_use
}
