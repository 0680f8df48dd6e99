// c = a @ b with k = n = 4096, a queue of tiles: the steps of all tiles, in a row, are cut into one stretch a block. A tile that
// lies in several stretches is kept in parts; the last of its blocks to arrive adds them up in order.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;
using T = __nv_bfloat16;

constexpr int kN = 4096, kK = 4096;
constexpr int kTile = 64, kTileK = 16, kStages = 4, kThreads = 128;
constexpr unsigned kSteps = kK / kTileK, kTilesN = kN / kTile;
constexpr int kStrideA = kTileK + 8, kStrideB = kTile + 8, kStrideC = 20;

__device__ __forceinline__ void copy16(void* to, const void* from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(to))), "l"(from),
               "r"(bytes)
               : "memory");
}


constexpr unsigned kGroup = 16;

extern "C" __global__ void __launch_bounds__(kThreads) gemm(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ c,
                                                            unsigned* next, int m) {
  __shared__ __align__(128) T tile_a[kStages][kTile * kStrideA];
  __shared__ __align__(128) T tile_b[kStages][kTileK * kStrideB];
  __shared__ __align__(128) float patches[kThreads / 32][16 * kStrideC];
  __shared__ unsigned drawn;
  const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  const int warp_m = warp / 2 * 32, warp_n = warp % 2 * 32;
  const unsigned tiles_m = (m + kTile - 1) / kTile;
  for (;;) {
    __syncthreads();
    if (thread == 0) drawn = atomicAdd(next, 1u);
    __syncthreads();
    const unsigned ticket = drawn;
    if (ticket >= tiles_m * kTilesN) return;
    const unsigned group = ticket / (kGroup * kTilesN), within = ticket % (kGroup * kTilesN);
    const unsigned height = tiles_m < kGroup ? tiles_m : min(kGroup, tiles_m - group * kGroup);
    const unsigned tm = group * kGroup + within % height, tn = within / height;
    if (tm >= tiles_m || tn >= kTilesN) continue;
    const long long m0 = static_cast<long long>(tm) * kTile;
    const int n0 = tn * kTile;
    const int first = 0, stop = kSteps;

    const auto fetch = [&](int step) {
      const int slot = (step - first) % kStages, k0 = step * kTileK;
      {
        const int row = thread / 2, column = thread % 2 * 8;
        const bool inside = m0 + row < m;
        copy16(tile_a[slot] + row * kStrideA + column, a + (inside ? m0 + row : 0) * kK + k0 + column, inside ? 16 : 0);
      }
      {
        const int row = thread / 8, column = thread % 8 * 8;
        copy16(tile_b[slot] + row * kStrideB + column, b + static_cast<long long>(k0 + row) * kN + n0 + column, 16);
      }
    };

    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[2][2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int j = 0; j < 2; ++j) wmma::fill_fragment(sum[i][j], 0.0f);
    for (int s = 0; s < kStages - 1; ++s) {
      if (first + s < stop) fetch(first + s);
      asm volatile("cp.async.commit_group;" ::: "memory");
    }
    for (int step = first; step < stop; ++step) {
      asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 2) : "memory");
      __syncthreads();
      if (step + kStages - 1 < stop) fetch(step + kStages - 1);
      asm volatile("cp.async.commit_group;" ::: "memory");
      const int slot = (step - first) % kStages;
      wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> left[2];
      wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::row_major> right[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) wmma::load_matrix_sync(left[i], tile_a[slot] + (warp_m + i * 16) * kStrideA, kStrideA);
#pragma unroll
      for (int j = 0; j < 2; ++j) wmma::load_matrix_sync(right[j], tile_b[slot] + warp_n + j * 16, kStrideB);
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 2; ++j) wmma::mma_sync(sum[i][j], left[i], right[j], sum[i][j]);
    }
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    __syncthreads();

    {
      float* patch = patches[warp];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          wmma::store_matrix_sync(patch, sum[i][j], kStrideC, wmma::mem_row_major);
          __syncwarp();
          const int row = lane / 2, column = lane % 2 * 8;
          const long long to = m0 + warp_m + i * 16 + row;
          if (to < m) {
            uint4 bits;
            __nv_bfloat162* pairs = reinterpret_cast<__nv_bfloat162*>(&bits);
#pragma unroll
            for (int e = 0; e < 4; ++e)
              pairs[e] = __floats2bfloat162_rn(patch[row * kStrideC + column + 2 * e], patch[row * kStrideC + column + 2 * e + 1]);
            *reinterpret_cast<uint4*>(c + to * kN + n0 + warp_n + j * 16 + column) = bits;
          }
          __syncwarp();
        }
      }
    }

  }
}
