// Dynamic shared memory, vector accesses, inline assembly for the tensor cores, launch bounds.
#include <cuda_fp16.h>
#include <cuda_pipeline_primitives.h>

extern __shared__ __align__(16) unsigned char dynamic_tile[];

__global__ void __launch_bounds__(256, 2)
    gemm_f32(const float* __restrict__ a, const float* __restrict__ b, float* c, int m, int n,
             int k) {
  float(*tile_a)[33] = reinterpret_cast<float(*)[33]>(dynamic_tile);
  float(*tile_b)[33] = tile_a + 32;
  float sum[4] = {};
  const int row = blockIdx.y * 32 + threadIdx.y * 4, column = blockIdx.x * 32 + threadIdx.x;
  for (int start = 0; start < k; start += 32) {
    for (int i = 0; i < 4; ++i) {
      tile_a[threadIdx.y * 4 + i][threadIdx.x] =
          row + i < m && start + threadIdx.x < k ? a[(row + i) * k + start + threadIdx.x] : 0.0f;
      tile_b[threadIdx.y * 4 + i][threadIdx.x] = column < n && start + threadIdx.y * 4 + i < k
                                                     ? b[(start + threadIdx.y * 4 + i) * n + column]
                                                     : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int j = 0; j < 32; ++j) {
      for (int i = 0; i < 4; ++i)
        sum[i] = fmaf(tile_a[threadIdx.y * 4 + i][j], tile_b[j][threadIdx.x], sum[i]);
    }
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i) {
    if (row + i < m && column < n) c[(row + i) * n + column] = sum[i];
  }
}

#if __CUDA_ARCH__ >= 800
__global__ void gemm_f16(const half* a, const half* b, float* c, int k) {
  half* tile = reinterpret_cast<half*>(dynamic_tile);
  float d[4] = {};
  for (int start = 0; start < k; start += 16) {
    __pipeline_memcpy_async(tile + threadIdx.x * 8, a + start * 16 + threadIdx.x * 8, 16);
    __pipeline_memcpy_async(tile + 256 + threadIdx.x * 8, b + start * 8 + threadIdx.x * 8, 16,
                            threadIdx.x < 16 ? 0 : 16);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    unsigned fa[4], fb[2];
    const unsigned address =
        static_cast<unsigned>(__cvta_generic_to_shared(tile + threadIdx.x * 8));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(fa[0]), "=r"(fa[1]), "=r"(fa[2]), "=r"(fa[3])
                 : "r"(address));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(fb[0]), "=r"(fb[1])
                 : "r"(address + 512));
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1]));
    __syncthreads();
  }
  reinterpret_cast<float4*>(c)[threadIdx.x] = make_float4(d[0], d[1], d[2], d[3]);
}
#endif
