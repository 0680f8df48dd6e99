// Kernels whose numbers pass through ldmatrix, stmatrix, wmma.load or wmma.store after a rounding whose line is marked "LOSES <kernel>".
// Compiled with: nvcc -ptx -arch=sm_90 -lineinfo fragments.cu, and the directories taken out of the .file lines.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

using bf16 = __nv_bfloat16;
namespace wmma = nvcuda::wmma;

// out = x @ x of 16 by 16, one warp; operands are rounded on their way into shared memory.
extern "C" __global__ void wmma_rows(float* out, const float* x, int) {
  __shared__ __align__(32) bf16 tile[256];
  for (int i = threadIdx.x; i < 256; i += 32) {
    tile[i] = __float2bfloat16(x[i]);  // LOSES wmma_rows
  }
  __syncwarp();
  wmma::fragment<wmma::matrix_a, 16, 16, 16, bf16, wmma::row_major> a;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, bf16, wmma::row_major> b;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
  wmma::fill_fragment(c, 0.0f);
  wmma::load_matrix_sync(a, tile, 16);
  wmma::load_matrix_sync(b, tile, 16);
  wmma::mma_sync(c, a, b, c);
  wmma::store_matrix_sync(out, c, 16, wmma::mem_row_major);
}
// out = transpose(x) @ transpose(x) in f16, stored by columns.
extern "C" __global__ void wmma_columns(float* out, const float* x, int) {
  __shared__ __align__(32) __half tile[256];
  for (int i = threadIdx.x; i < 256; i += 32) {
    tile[i] = __float2half(x[i]);  // LOSES wmma_columns
  }
  __syncwarp();
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::col_major> a;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> b;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
  wmma::fill_fragment(c, 0.0f);
  wmma::load_matrix_sync(a, tile, 16);
  wmma::load_matrix_sync(b, tile, 16);
  wmma::mma_sync(c, a, b, c);
  wmma::store_matrix_sync(out, c, 16, wmma::mem_col_major);
}
// out = x + 0 @ 0: an accumulator that was rounded before it is loaded and stored again.
extern "C" __global__ void wmma_accumulator(float* out, const float* x, int) {
  __shared__ __align__(32) float tile[256];
  for (int i = threadIdx.x; i < 256; i += 32) {
    tile[i] = __bfloat162float(__float2bfloat16(x[i]));  // LOSES wmma_accumulator
  }
  __syncwarp();
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
  wmma::load_matrix_sync(c, tile, 16, wmma::mem_row_major);
  wmma::store_matrix_sync(out, c, 16, wmma::mem_row_major);
}
// The upper left corner of x @ x, 16 by 8, as flash kernels load it.
extern "C" __global__ void ldmatrix(float* out, const float* x, int) {
  __shared__ __align__(32) bf16 tile[256];
  for (int i = threadIdx.x; i < 256; i += 32) {
    tile[i] = __float2bfloat16(x[i]);  // LOSES ldmatrix
  }
  __syncwarp();
  unsigned a[4], b[2];
  const int lane = threadIdx.x;
  const auto left = __cvta_generic_to_shared(tile + lane % 16 * 16 + lane / 16 * 8);
  const auto right = __cvta_generic_to_shared(tile + lane % 16 * 16);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
               : "r"(static_cast<unsigned>(left)));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
               : "=r"(b[0]), "=r"(b[1])
               : "r"(static_cast<unsigned>(right)));
  float d[4] = {};
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  for (int i = 0; i < 4; ++i) out[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = d[i];
}
// out = x, rounded in registers and stored as a matrix of 8 by 8.
extern "C" __global__ void stmatrix(float* out, const float* x, int) {
  __shared__ __align__(32) __half tile[64];
  const int lane = threadIdx.x;
  const float2 pair = {x[lane * 2], x[lane * 2 + 1]};
  const __half2 rounded = __float22half2_rn(pair);  // LOSES stmatrix
  const auto row = __cvta_generic_to_shared(tile + lane % 8 * 8);
  asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};" ::"r"(static_cast<unsigned>(row)),
               "r"(*reinterpret_cast<const unsigned*>(&rounded))
               : "memory");
  __syncwarp();
  for (int i = lane; i < 64; i += 32) out[i] = __half2float(tile[i]);
}
