// y = x / sqrt(mean(x^2) + eps) * weight. Up to 1024: a warp a row. Beyond: clusters of four blocks that stay, each block a
// quarter of the row and of the weight in registers; the blocks hand their partial sums to each other through distributed
// shared memory, into two slots in turn, so that one cluster barrier a row is enough.
#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace cg = cooperative_groups;
using T = ASSAY_T;

constexpr int kThreads = 256;
constexpr int kRanks = 4;
constexpr int kChunks = 2;  // of 8 elements a thread: 4 * 256 * 2 * 8 = 16384

__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

__device__ __forceinline__ void load8(const T* __restrict__ p, long long left, bool vectors, float* values) {
  if (vectors && left >= 8) {
    uint4 raw[sizeof(T) / 2];
#pragma unroll
    for (int i = 0; i < int(sizeof(T) / 2); ++i) raw[i] = reinterpret_cast<const uint4*>(p)[i];
    const T* v = reinterpret_cast<const T*>(raw);
#pragma unroll
    for (int e = 0; e < 8; ++e) values[e] = static_cast<float>(v[e]);
  } else {
#pragma unroll
    for (int e = 0; e < 8; ++e) values[e] = e < left ? static_cast<float>(p[e]) : 0.0f;
  }
}

__device__ __forceinline__ void store8(T* __restrict__ p, long long left, bool vectors, const float* values) {
  if (vectors && left >= 8) {
    uint4 raw[sizeof(T) / 2];
    T* v = reinterpret_cast<T*>(raw);
#pragma unroll
    for (int e = 0; e < 8; ++e) v[e] = T(values[e]);
#pragma unroll
    for (int i = 0; i < int(sizeof(T) / 2); ++i) reinterpret_cast<uint4*>(p)[i] = raw[i];
  } else {
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      if (e < left) p[e] = T(values[e]);
    }
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
rms_norm_warp(const T* __restrict__ x, const T* __restrict__ weight, float eps, T* __restrict__ y, long long tokens,
              long long hidden) {
  const int lane = threadIdx.x % 32;
  const long long token = static_cast<long long>(blockIdx.x) * (kThreads / 32) + threadIdx.x / 32;
  if (token >= tokens) return;
  const bool vectors = hidden % 8 == 0;
  const T* row = x + token * hidden;
  float squares = 0.0f;
  for (long long h = lane * 8; h < hidden; h += 256) {
    float v[8];
    load8(row + h, hidden - h, vectors, v);
#pragma unroll
    for (int e = 0; e < 8; ++e) squares += v[e] * v[e];
  }
  const float scale = rsqrtf(warp_sum(squares) / static_cast<float>(hidden) + eps);
  for (long long h = lane * 8; h < hidden; h += 256) {
    float v[8], w[8];
    load8(row + h, hidden - h, vectors, v);
    load8(weight + h, hidden - h, vectors, w);
#pragma unroll
    for (int e = 0; e < 8; ++e) v[e] = v[e] * scale * w[e];
    store8(y + token * hidden + h, hidden - h, vectors, v);
  }
}

extern "C" __global__ void __cluster_dims__(kRanks, 1, 1) __launch_bounds__(kThreads)
rms_norm_cluster(const T* __restrict__ x, const T* __restrict__ weight, float eps, T* __restrict__ y,
                 long long tokens, long long hidden) {
  cg::cluster_group cluster = cg::this_cluster();
  __shared__ float warp_sums[kThreads / 32];
  __shared__ float sums[2][kRanks];
  const int rank = static_cast<int>(cluster.block_rank());
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const bool vectors = hidden % 8 == 0;
  const long long part = ((hidden + kRanks - 1) / kRanks + 7) / 8 * 8;
  const long long begin = rank * part;
  const long long end = begin + part < hidden ? begin + part : hidden;

  float w[kChunks][8];
#pragma unroll
  for (int c = 0; c < kChunks; ++c) {
    const long long h = begin + (c * kThreads + threadIdx.x) * 8;
    load8(weight + h, end - h, vectors, w[c]);
  }

  cluster.sync();  // All four run before one writes to another.
  int slot = 0;
  for (long long token = blockIdx.x / kRanks; token < tokens; token += gridDim.x / kRanks, slot ^= 1) {
    const T* row = x + token * hidden;
    float v[kChunks][8];
    float squares = 0.0f;
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      const long long h = begin + (c * kThreads + threadIdx.x) * 8;
      load8(row + h, end - h, vectors, v[c]);
#pragma unroll
      for (int e = 0; e < 8; ++e) squares += v[c][e] * v[c][e];
    }
    squares = warp_sum(squares);
    if (lane == 0) warp_sums[warp] = squares;
    __syncthreads();
    if (threadIdx.x < kRanks) {
      float total = 0.0f;
#pragma unroll
      for (int i = 0; i < kThreads / 32; ++i) total += warp_sums[i];
      *cluster.map_shared_rank(&sums[slot][rank], threadIdx.x) = total;
    }
    cluster.sync();
    float total = 0.0f;
#pragma unroll
    for (int r = 0; r < kRanks; ++r) total += sums[slot][r];
    const float scale = rsqrtf(total / static_cast<float>(hidden) + eps);
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      const long long h = begin + (c * kThreads + threadIdx.x) * 8;
#pragma unroll
      for (int e = 0; e < 8; ++e) v[c][e] = v[c][e] * scale * w[c][e];
      store8(y + token * hidden + h, end - h, vectors, v[c]);
    }
  }
}
