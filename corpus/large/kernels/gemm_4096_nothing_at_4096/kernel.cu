// c = a @ b, k = n = 4096, bf16. Tiles of 128 by 128 through three stages of cp.async and tensor cores. Up to 512 rows k is split
// eight ways, and the block of a tile that arrives last adds the parts up in order; above, blocks are persistent and take the tiles
// in groups of rows.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>

using namespace nvcuda;
using T = __nv_bfloat16;

constexpr int kN = 4096, kK = 4096;
constexpr int kTileM = 128, kTileN = 128, kTileK = 32, kStages = 3, kThreads = 256;
constexpr int kSplits = 8;
constexpr int kStrideA = kTileK + 8, kStrideB = kTileN + 8, kStrideC = 20;
constexpr int kStageA = kTileM * kStrideA, kStageB = kTileK * kStrideB;      // elements
constexpr int kPatch = 16 * kStrideC;
constexpr unsigned kTilesN = kN / kTileN;

using Sum = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;

// Adds `steps` steps of 32 from `first` on to the sums of the tile at (m0, n0). All stages are free again when it returns.
__device__ __forceinline__ void multiply(const T* __restrict__ a, const T* __restrict__ b, T* stages, int m0, int n0, int m, int first,
                                         int steps, Sum (&sum)[4][2]) {
  const int thread = threadIdx.x, warp = thread / 32;
  const int warp_m = warp / 4 * 64, warp_n = warp % 4 * 32;
  T* const tiles_a = stages;
  T* const tiles_b = stages + kStages * kStageA;
  const auto fetch = [&](int step) {
    const int slot = step % kStages, k0 = (first + step) * kTileK;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int piece = thread + i * kThreads, row = piece / 4, column = piece % 4 * 8;
      const bool inside = m0 + row < m;
      __pipeline_memcpy_async(tiles_a + slot * kStageA + row * kStrideA + column,
                              a + static_cast<long long>(inside ? m0 + row : 0) * kK + k0 + column, 16, inside ? 0 : 16);
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int piece = thread + i * kThreads, row = piece / 16, column = piece % 16 * 8;
      __pipeline_memcpy_async(tiles_b + slot * kStageB + row * kStrideB + column,
                              b + static_cast<long long>(k0 + row) * kN + n0 + column, 16);
    }
  };
  for (int s = 0; s < kStages - 1; ++s) {
    if (s < steps) fetch(s);
    __pipeline_commit();
  }
  for (int step = 0; step < steps; ++step) {
    __pipeline_wait_prior(kStages - 2);
    __syncthreads();
    if (step + kStages - 1 < steps) fetch(step + kStages - 1);
    __pipeline_commit();
    const T* tile_a = tiles_a + step % kStages * kStageA;
    const T* tile_b = tiles_b + step % kStages * kStageB;
#pragma unroll
    for (int k = 0; k < kTileK; k += 16) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> left[4];
      wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::row_major> right[2];
#pragma unroll
      for (int i = 0; i < 4; ++i) wmma::load_matrix_sync(left[i], tile_a + (warp_m + i * 16) * kStrideA + k, kStrideA);
#pragma unroll
      for (int j = 0; j < 2; ++j) wmma::load_matrix_sync(right[j], tile_b + k * kStrideB + warp_n + j * 16, kStrideB);
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 2; ++j) wmma::mma_sync(sum[i][j], left[i], right[j], sum[i][j]);
    }
  }
  __pipeline_wait_prior(0);
  __syncthreads();
}

__device__ __forceinline__ void clear(Sum (&sum)[4][2]) {
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 2; ++j) wmma::fill_fragment(sum[i][j], 0.0f);
}

__device__ __forceinline__ uint4 rounded(const float* v) {
  uint4 bits;
  __nv_bfloat162* pairs = reinterpret_cast<__nv_bfloat162*>(&bits);
#pragma unroll
  for (int e = 0; e < 4; ++e) pairs[e] = __floats2bfloat162_rn(v[2 * e], v[2 * e + 1]);
  return bits;
}

template <int kGroup>
__global__ void __launch_bounds__(kThreads) persistent(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ c, int m) {
  extern __shared__ __align__(128) unsigned char memory[];
  __shared__ unsigned place;
  T* stages = reinterpret_cast<T*>(memory);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int warp_m = warp / 4 * 64, warp_n = warp % 4 * 32;
  float* patch = reinterpret_cast<float*>(memory + kStages * (kStageA + kStageB) * sizeof(T)) + warp * kPatch;
  const unsigned tiles_m = (m + kTileM - 1) / kTileM;
  Sum sum[4][2];
  for (unsigned tile = blockIdx.x; tile < tiles_m * kTilesN; tile += gridDim.x) {
    if (threadIdx.x == 0) {
      const unsigned group = tile / (kGroup * kTilesN), within = tile % (kGroup * kTilesN);
      const unsigned height = min(static_cast<unsigned>(kGroup), tiles_m - group * kGroup);
      const unsigned tm = group * kGroup + within % height, tn = within / height;
      place = tm * kTileM << 16 | tn * kTileN;      // m0 < 65536
    }
    __syncthreads();
    const unsigned packed = place;
    const int m0 = packed >> 16, n0 = packed & 0xffff;
    clear(sum);
    multiply(a, b, stages, m0, n0, m, 0, kK / kTileK, sum);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        wmma::store_matrix_sync(patch, sum[i][j], kStrideC, wmma::mem_row_major);
        __syncwarp();
        const int row = m0 + warp_m + i * 16 + lane / 2, column = lane % 2 * 8;
        if (row < m)
          *reinterpret_cast<uint4*>(c + static_cast<long long>(row) * kN + n0 + warp_n + j * 16 + column) =
              rounded(patch + lane / 2 * kStrideC + column);
        __syncwarp();
      }
    }
  }
}

extern "C" __global__ void __launch_bounds__(kThreads) split(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ c,
                                                             float* part, unsigned* arrived, int m) {
  extern __shared__ __align__(128) unsigned char room[];
  __shared__ bool last;
  T* stages = reinterpret_cast<T*>(room);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int warp_m = warp / 4 * 64, warp_n = warp % 4 * 32;
  float* patch = reinterpret_cast<float*>(room + kStages * (kStageA + kStageB) * sizeof(T)) + warp * kPatch;
  const int n0 = blockIdx.x * kTileN, m0 = blockIdx.y * kTileM;
  constexpr int kSteps = kK / kTileK / kSplits;
  Sum sum[4][2];
  clear(sum);
  multiply(a, b, stages, m0, n0, m, blockIdx.z * kSteps, kSteps, sum);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      wmma::store_matrix_sync(patch, sum[i][j], kStrideC, wmma::mem_row_major);
      __syncwarp();
      const int row = m0 + warp_m + i * 16 + lane / 2, column = lane % 2 * 8;
      if (row < m) {
        const float4* from = reinterpret_cast<const float4*>(patch + lane / 2 * kStrideC + column);
        float4* to = reinterpret_cast<float4*>(part + (static_cast<long long>(blockIdx.z) * m + row) * kN + n0 + warp_n + j * 16 + column);
        to[0] = from[0];
        to[1] = from[1];
      }
      __syncwarp();
    }
  }
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(&arrived[blockIdx.y * kTilesN + blockIdx.x], 1u) == kSplits - 1;
  __syncthreads();
  if (!last) return;
  __threadfence();
  for (int i = threadIdx.x; i < kTileM * kTileN / 8; i += kThreads) {
    const int row = m0 + i / (kTileN / 8), column = n0 + i % (kTileN / 8) * 8;
    if (row >= m) break;
    float v[8] = {};
#pragma unroll
    for (int s = 0; s < kSplits; ++s) {
      const float4* from = reinterpret_cast<const float4*>(part + (static_cast<long long>(s) * m + row) * kN + column);
      const float4 low = __ldcg(from), high = __ldcg(from + 1);
      v[0] += low.x;
      v[1] += low.y;
      v[2] += low.z;
      v[3] += low.w;
      v[4] += high.x;
      v[5] += high.y;
      v[6] += high.z;
      v[7] += high.w;
    }
    *reinterpret_cast<uint4*>(c + static_cast<long long>(row) * kN + column) = rounded(v);
  }
}
