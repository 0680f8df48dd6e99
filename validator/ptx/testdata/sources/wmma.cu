// nvcuda::wmma in its types.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;
__global__ void w(half* a, half* b, float* c) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> A;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> B;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> C;
  wmma::fill_fragment(C, 0.f);
  wmma::load_matrix_sync(A, a, 16);
  wmma::load_matrix_sync(B, b, 16);
  wmma::mma_sync(C, A, B, C);
  wmma::store_matrix_sync(c, C, 16, wmma::mem_row_major);
}
#if __CUDA_ARCH__ >= 720
__global__ void i8(signed char* a, signed char* b, int* c) {
  wmma::fragment<wmma::matrix_a, 8, 32, 16, signed char, wmma::row_major> A;
  wmma::fragment<wmma::matrix_b, 8, 32, 16, signed char, wmma::col_major> B;
  wmma::fragment<wmma::accumulator, 8, 32, 16, int> C;
  wmma::fill_fragment(C, 0);
  wmma::load_matrix_sync(A, a, 16);
  wmma::load_matrix_sync(B, b, 16);
  wmma::mma_sync(C, A, B, C);
  wmma::store_matrix_sync(c, C, 32, wmma::mem_col_major);
}
#endif
#if __CUDA_ARCH__ >= 800
__global__ void bw(__nv_bfloat16* a, __nv_bfloat16* b, float* c) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::row_major> A;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::row_major> B;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> C;
  wmma::fill_fragment(C, 0.f);
  wmma::load_matrix_sync(A, a, 16);
  wmma::load_matrix_sync(B, b, 16);
  wmma::mma_sync(C, A, B, C);
  wmma::store_matrix_sync(c, C, 16, wmma::mem_row_major);
}
__global__ void dw(double* a, double* b, double* c) {
  wmma::fragment<wmma::matrix_a, 8, 8, 4, double, wmma::row_major> A;
  wmma::fragment<wmma::matrix_b, 8, 8, 4, double, wmma::col_major> B;
  wmma::fragment<wmma::accumulator, 8, 8, 4, double> C;
  wmma::fill_fragment(C, 0.0);
  wmma::load_matrix_sync(A, a, 16);
  wmma::load_matrix_sync(B, b, 16);
  wmma::mma_sync(C, A, B, C);
  wmma::store_matrix_sync(c, C, 16, wmma::mem_row_major);
}
#endif
