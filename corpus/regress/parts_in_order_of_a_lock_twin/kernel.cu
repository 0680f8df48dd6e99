#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

// Tensor cores, tiles of 64 x 64, k in four parts. The parts of a tile are added in f32 workspace, one block at a time.
constexpr int kThreads = 128;
constexpr int kTile = 64;
constexpr int kStep = 32;
constexpr int kPitch = kStep + 8;
constexpr int kParts = 4;

__device__ __forceinline__ unsigned pair_at(const T* p) { return *reinterpret_cast<const unsigned*>(p); }

__device__ __forceinline__ unsigned load_acquire(const unsigned* p) {
  unsigned value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(p) : "memory");
  return value;
}

__device__ __forceinline__ void store_release(unsigned* p, unsigned value) {
  asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(value) : "memory");
}

// How many parts have been added before this one.
__device__ __forceinline__ unsigned enter(unsigned* turn, unsigned part) {
  while (load_acquire(turn) != part) {
  }
  return part;
}

__device__ __forceinline__ void leave(unsigned* turn, unsigned before) {
  store_release(turn, before + 1);
}

extern "C" __global__ void __launch_bounds__(kThreads) gemm(const T* __restrict__ a, const T* __restrict__ b,
    float* sums, unsigned* ticket, unsigned* turns, T* __restrict__ c, long long m, long long n, long long k) {
  __shared__ alignas(16) T as[kTile * kPitch];
  __shared__ alignas(16) T bs[kTile * kPitch];  // transposed: n by k
  __shared__ unsigned shared_work, shared_before;
  if (threadIdx.x == 0) shared_work = atomicAdd(ticket, 1u);
  __syncthreads();
  const unsigned tile = shared_work / kParts, part = shared_work % kParts;
  const unsigned across = static_cast<unsigned>((n + kTile - 1) / kTile);
  const long long i0 = static_cast<long long>(tile / across) * kTile;
  const long long j0 = static_cast<long long>(tile % across) * kTile;
  const long long steps = (k + kStep - 1) / kStep;
  const long long each = (steps + kParts - 1) / kParts * kStep;
  const long long begin = part * each, end = min(k, begin + each);

  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int group = lane / 4, quad = lane % 4;
  const int wi = warp / 2 * 32, wj = warp % 2 * 32;
  float acc[2][4][4] = {};
  for (long long l0 = begin; l0 < end; l0 += kStep) {
    __syncthreads();
    for (int e = threadIdx.x; e < kTile * kStep; e += kThreads) {
      const int i = e / kStep, l = e % kStep;
      as[i * kPitch + l] = i0 + i < m && l0 + l < k ? a[(i0 + i) * k + l0 + l] : T(0.0f);
    }
    for (int e = threadIdx.x; e < kTile * kStep; e += kThreads) {
      const int l = e / kTile, j = e % kTile;
      bs[j * kPitch + l] = j0 + j < n && l0 + l < k ? b[(l0 + l) * n + j0 + j] : T(0.0f);
    }
    __syncthreads();
#pragma unroll
    for (int l = 0; l < kStep; l += 16) {
      unsigned fa[2][4], fb[4][2];
#pragma unroll
      for (int x = 0; x < 2; ++x) {
        const T* p = as + (wi + x * 16 + group) * kPitch + l + quad * 2;
        fa[x][0] = pair_at(p);
        fa[x][1] = pair_at(p + 8 * kPitch);
        fa[x][2] = pair_at(p + 8);
        fa[x][3] = pair_at(p + 8 * kPitch + 8);
      }
#pragma unroll
      for (int y = 0; y < 4; ++y) {
        const T* p = bs + (wj + y * 8 + group) * kPitch + l + quad * 2;
        fb[y][0] = pair_at(p);
        fb[y][1] = pair_at(p + 8);
      }
#pragma unroll
      for (int x = 0; x < 2; ++x) {
#pragma unroll
        for (int y = 0; y < 4; ++y) {
          asm volatile(
              "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
              "{%8, %9}, {%0, %1, %2, %3};"
              : "+f"(acc[x][y][0]), "+f"(acc[x][y][1]), "+f"(acc[x][y][2]), "+f"(acc[x][y][3])
              : "r"(fa[x][0]), "r"(fa[x][1]), "r"(fa[x][2]), "r"(fa[x][3]), "r"(fb[y][0]), "r"(fb[y][1]));
        }
      }
    }
  }
  if (threadIdx.x == 0) shared_before = enter(turns + tile, part);
  __syncthreads();
  const unsigned before = shared_before;
#pragma unroll
  for (int x = 0; x < 2; ++x) {
#pragma unroll
    for (int y = 0; y < 4; ++y) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const long long i = i0 + wi + x * 16 + group + e / 2 * 8;
        const long long j = j0 + wj + y * 8 + quad * 2 + e % 2;
        if (i >= m || j >= n) continue;
        const float sum = before == 0 ? acc[x][y][e] : sums[i * n + j] + acc[x][y][e];
        if (before == kParts - 1) {
          c[i * n + j] = T(sum);
        } else {
          sums[i * n + j] = sum;
        }
      }
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    leave(turns + tile, before);
  }
}
