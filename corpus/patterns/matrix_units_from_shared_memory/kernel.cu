#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void product(const __half* a, const __half* b, float* c) {
  __shared__ __align__(32) __half sa[32 * 16], sb[16 * 32];
  for (int i = threadIdx.x; i < 512; i += 64) {
    sa[i] = a[i];
    sb[i] = b[i];
  }
  __syncthreads();
  int warp = threadIdx.x / 32;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
  wmma::load_matrix_sync(fa, sa + warp * 256, 16);
  wmma::load_matrix_sync(fb, sb, 32);
  wmma::fill_fragment(fc, 0.0f);
  wmma::mma_sync(fc, fa, fb, fc);
  wmma::store_matrix_sync(c + warp * 256, fc, 16, wmma::mem_row_major);
}
