// Split-K in one launch: four blocks share a 64x64 tile of c, each with 1024 of k. The block that
// draws a tile's last ticket adds the four parts, always in the same order.
#include <cuda_fp16.h>

namespace {

constexpr int kN = 4096;
constexpr int kK = 4096;
constexpr int kSplits = 4;
constexpr int kBm = 64;
constexpr int kBn = 64;
constexpr int kBk = 32;
constexpr int kSteps = kK / kSplits / kBk;
constexpr int kThreads = 128;
constexpr int kStrideA = kBk + 8;
constexpr int kStrideB = kBn + 8;

__device__ __forceinline__ unsigned smem_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void ldmatrix_x4(unsigned (&r)[4], const __half* p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(smem_address(p))
               : "memory");
}

__device__ __forceinline__ void ldmatrix_x4_trans(unsigned (&r)[4], const __half* p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(smem_address(p))
               : "memory");
}

// d += a * b, a 16x16, b 16x8.
__device__ __forceinline__ void mma(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Copies 16 bytes, of which the first `bytes` are read and the rest is zero.
__device__ __forceinline__ void copy_async(void* to, const void* from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :
               : "r"(smem_address(to)), "l"(from), "r"(bytes)
               : "memory");
}

__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <int kPending>
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

struct Stage {
  __half a[kBm][kStrideA];
  __half b[kBk][kStrideB];
};

__device__ __forceinline__ void load_stage(Stage& stage, const __half* __restrict__ a,
                                           const __half* __restrict__ b, int row0, int column0,
                                           int m, int k0) {
#pragma unroll
  for (int i = threadIdx.x; i < kBm * kBk / 8; i += kThreads) {
    const int r = i / (kBk / 8);
    const int c = i % (kBk / 8) * 8;
    const int row = min(row0 + r, m - 1);
    copy_async(&stage.a[r][c], a + static_cast<long long>(row) * kK + k0 + c,
               row0 + r < m ? 16 : 0);
  }
#pragma unroll
  for (int i = threadIdx.x; i < kBk * kBn / 8; i += kThreads) {
    const int r = i / (kBn / 8);
    const int c = i % (kBn / 8) * 8;
    copy_async(&stage.b[r][c], b + static_cast<long long>(k0 + r) * kN + column0 + c, 16);
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads)
    gemm_split_k(const __half* __restrict__ a, const __half* __restrict__ b, float* parts,
                 unsigned* tickets, __half* __restrict__ c, int m) {
  __shared__ __align__(16) Stage stages[2];
  __shared__ bool last_of_tile;
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const int warp_row = warp / 2 * 32;
  const int warp_column = warp % 2 * 32;
  const int column0 = blockIdx.x * kBn;
  const int row0 = blockIdx.y * kBm;
  const int k0 = blockIdx.z * (kK / kSplits);

  load_stage(stages[0], a, b, row0, column0, m, k0);
  commit();
  float acc[2][4][4] = {};
  for (int step = 0; step < kSteps; ++step) {
    if (step + 1 < kSteps)
      load_stage(stages[(step + 1) % 2], a, b, row0, column0, m, k0 + (step + 1) * kBk);
    commit();
    wait_for_copies<1>();
    __syncthreads();
    const Stage& stage = stages[step % 2];
#pragma unroll
    for (int kk = 0; kk < kBk; kk += 16) {
      unsigned fa[2][4], fb[2][4];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        ldmatrix_x4(fa[i], &stage.a[warp_row + i * 16 + lane % 16][kk + lane / 16 * 8]);
#pragma unroll
      for (int j = 0; j < 2; ++j)
        ldmatrix_x4_trans(fb[j], &stage.b[kk + lane % 16][warp_column + j * 16 + lane / 16 * 8]);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) mma(acc[i][j], fa[i], fb[j / 2][j % 2 * 2], fb[j / 2][j % 2 * 2 + 1]);
      }
    }
    __syncthreads();
  }
  wait_for_copies<0>();

  const long long plane = static_cast<long long>(m) * kN;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = row0 + warp_row + i * 16 + half * 8 + lane / 4;
        const int column = column0 + warp_column + j * 8 + lane % 4 * 2;
        if (row < m) {
          *reinterpret_cast<float2*>(parts + blockIdx.z * plane + static_cast<long long>(row) * kN +
                                     column) =
              make_float2(acc[i][j][half * 2], acc[i][j][half * 2 + 1]);
        }
      }
    }
  }

  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    const unsigned tile = blockIdx.y * gridDim.x + blockIdx.x;
    __threadfence();
    last_of_tile = atomicAdd(&tickets[tile], 1u) == kSplits - 1;
    __threadfence();
  }
  __syncthreads();
  if (!last_of_tile) return;
  __threadfence();

#pragma unroll
  for (int i = 0; i < 2; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = row0 + warp_row + i * 16 + half * 8 + lane / 4;
        const int column = column0 + warp_column + j * 8 + lane % 4 * 2;
        if (row < m) {
          const long long at = static_cast<long long>(row) * kN + column;
          float x = 0.0f, y = 0.0f;
          for (int s = 0; s < kSplits; ++s) {
            const float2 part = *reinterpret_cast<const float2*>(parts + s * plane + at);
            x += part.x;
            y += part.y;
          }
          *reinterpret_cast<__half2*>(c + at) = __floats2half2_rn(x, y);
        }
      }
    }
  }
}
