// Layer normalisation with rows in registers. Rows of up to 4096 have a block each; of longer ones each block of a cluster
// of four has 4096 elements, and the blocks' means and squares are merged through distributed shared memory.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cooperative_groups.h>

namespace cg = cooperative_groups;
using T = float;

constexpr int kThreads = 256, kEach = 16, kPart = kThreads * kEach, kBlocks = 4, kWarps = kThreads / 32;

struct Moments {
  float count, mean, squares;
};

__device__ __forceinline__ float over_block(float value, float* warps) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
  __syncthreads();
  value = 0.0f;
#pragma unroll
  for (int w = 0; w < kWarps; ++w) value += warps[w];
  return value;
}

extern "C" __global__ void __cluster_dims__(kBlocks, 1, 1) __launch_bounds__(kThreads)
    layer_norm(const T* __restrict__ x, const T* __restrict__ weight, const T* __restrict__ bias, float eps, T* __restrict__ y,
               long long tokens, long long hidden) {
  __shared__ float sums[kWarps], squares[kWarps];
  __shared__ Moments shared[2];
  cg::cluster_group cluster = cg::this_cluster();
  const bool together = hidden > kPart;
  const int first = together ? static_cast<int>(cluster.block_rank()) * kPart : 0;
  const int mine = max(0, min(static_cast<int>(hidden) - first, kPart));
  const long long step = together ? gridDim.x / kBlocks : gridDim.x;
  int side = 0;
  for (long long token = together ? blockIdx.x / kBlocks : blockIdx.x; token < tokens; token += step, side ^= 1) {
    const T* from = x + token * hidden + first;
    float value[kEach];
    float sum = 0.0f;
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      const int i = threadIdx.x + e * kThreads;
      value[e] = i < mine ? __ldcs(from + i) : 0.0f;
      sum += value[e];
    }
    sum = over_block(sum, sums);
    float mean = mine > 0 ? sum / static_cast<float>(mine) : 0.0f;
    float square = 0.0f;
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      const float away = threadIdx.x + e * kThreads < mine ? value[e] - mean : 0.0f;
      square += away * away;
    }
    square = over_block(square, squares);

    if (together) {
      // Two sides: one is written while others still read the one before.
      if (threadIdx.x == 0) shared[side] = {static_cast<float>(mine), mean, square};
      cluster.sync();
      float count = 0.0f;
      mean = square = 0.0f;
      for (int rank = 0; rank < kBlocks; ++rank) {
        const Moments other = *cluster.map_shared_rank(shared + side, rank);
        if (other.count == 0.0f) continue;
        const float both = count + other.count;
        const float away = other.mean - mean;
        mean += away * (other.count / both);
        square += other.squares + away * (count * other.count / both) * away;
        count = both;
      }
    }
    const float scale = rsqrtf(square / static_cast<float>(hidden) + eps);
    T* to = y + token * hidden + first;
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      const int i = threadIdx.x + e * kThreads;
      if (i < mine) __stcs(to + i, (value[e] - mean) * scale * weight[first + i] + bias[first + i]);
    }
  }
  if (together) cluster.sync();  // Nobody leaves while others read.
}
