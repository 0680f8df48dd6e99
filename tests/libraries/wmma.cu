// nvcuda::wmma: one warp a tile of C = A B + C, A by rows, B by columns, n by k tiles as the grid says.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

template <class In, class Element, class Out, int kM, int kN, int kK>
__device__ void Multiply(const Element* a, const Element* b, Out* c, int n, int k) {
  const int row = blockIdx.y * kM;
  const int column = blockIdx.x * kN;
  wmma::fragment<wmma::accumulator, kM, kN, kK, Out> sum;
  wmma::fill_fragment(sum, Out(0));
  for (int l = 0; l < k; l += kK) {
    wmma::fragment<wmma::matrix_a, kM, kN, kK, In, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, kM, kN, kK, In, wmma::col_major> right;
    wmma::load_matrix_sync(left, a + row * k + l, k);
    wmma::load_matrix_sync(right, b + column * k + l, k);
    wmma::mma_sync(sum, left, right, sum);
  }
  wmma::store_matrix_sync(c + row * n + column, sum, n, wmma::mem_row_major);
}

extern "C" __global__ void wmma_f16(const __half* a, const __half* b, float* c, int n, int k) {
  Multiply<__half, __half, float, 16, 16, 16>(a, b, c, n, k);
}
extern "C" __global__ void wmma_f16_tall(const __half* a, const __half* b, __half* c, int n, int k) {
  Multiply<__half, __half, __half, 32, 8, 16>(a, b, c, n, k);
}
extern "C" __global__ void wmma_bf16(const __nv_bfloat16* a, const __nv_bfloat16* b, float* c, int n,
                                     int k) {
  Multiply<__nv_bfloat16, __nv_bfloat16, float, 8, 32, 16>(a, b, c, n, k);
}
extern "C" __global__ void wmma_tf32(const float* a, const float* b, float* c, int n, int k) {
  Multiply<wmma::precision::tf32, float, float, 16, 16, 8>(a, b, c, n, k);
}
extern "C" __global__ void wmma_s8(const signed char* a, const signed char* b, int* c, int n, int k) {
  Multiply<signed char, signed char, int, 16, 16, 16>(a, b, c, n, k);
}
extern "C" __global__ void wmma_f64(const double* a, const double* b, double* c, int n, int k) {
  Multiply<double, double, double, 8, 8, 4>(a, b, c, n, k);
}

/// Through shared memory, tiles of A transposed there, and element-wise work on the fragment.
extern "C" __global__ void wmma_shared(const __half* a, const __half* b, float* c) {
  __shared__ __align__(32) __half transposed[16 * 16];
  __shared__ __align__(32) float result[16 * 16];
  for (int i = threadIdx.x; i < 256; i += 32) transposed[i % 16 * 16 + i / 16] = a[i];
  __syncwarp();
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::col_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> right;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, 1.0f);
  wmma::load_matrix_sync(left, transposed, 16);
  wmma::load_matrix_sync(right, b, 16);
  wmma::mma_sync(sum, left, right, sum);
  for (int i = 0; i < sum.num_elements; ++i) sum.x[i] *= 2.0f;
  wmma::store_matrix_sync(result, sum, 16, wmma::mem_row_major);
  __syncwarp();
  for (int i = threadIdx.x; i < 256; i += 32) c[i] = result[i];
}
