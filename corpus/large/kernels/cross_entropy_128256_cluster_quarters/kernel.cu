// Cross-entropy over 128256 classes: persistent clusters of four blocks, a quarter of a token's logits each. The first
// block joins the quarters' maxima and sums, and the target's logit, through distributed shared memory; what it reads has
// two sides, so that one barrier of the cluster a token is enough.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cooperative_groups.h>

namespace cg = cooperative_groups;
using T = __nv_bfloat16;

constexpr int kVocab = 128256, kBlocks = 4, kPart = kVocab / kBlocks, kVectors = kPart / 8, kThreads = 512;
constexpr float kLowest = -3.402823466e38f;
static_assert(kPart * kBlocks == kVocab && kPart % 8 == 0, "whole vectors");

struct Online {
  float largest, sum;
};

__device__ __forceinline__ Online join(Online a, Online b) {
  const float largest = fmaxf(a.largest, b.largest);
  return {largest, a.sum * __expf(a.largest - largest) + b.sum * __expf(b.largest - largest)};
}

extern "C" __global__ void __cluster_dims__(kBlocks, 1, 1) __launch_bounds__(kThreads)
    cross_entropy(const T* __restrict__ logits, const long long* __restrict__ targets, float* __restrict__ loss, long long tokens) {
  __shared__ Online warps[kThreads / 32];
  __shared__ Online quarter[2];
  __shared__ float picked[2];
  cg::cluster_group cluster = cg::this_cluster();
  const int rank = static_cast<int>(cluster.block_rank());
  const long long clusters = gridDim.x / kBlocks;
  if (threadIdx.x == 0) picked[0] = picked[1] = 0.0f;
  int side = 0;
  for (long long token = blockIdx.x / kBlocks; token < tokens; token += clusters, side ^= 1) {
    const T* part = logits + token * kVocab + rank * kPart;
    const uint4* vectors = reinterpret_cast<const uint4*>(part);
    Online state{kLowest, 0.0f};
#pragma unroll 4
    for (int v = threadIdx.x; v < kVectors; v += kThreads) {
      const uint4 bits = __ldcs(vectors + v);
      const __nv_bfloat162* pairs = reinterpret_cast<const __nv_bfloat162*>(&bits);
      float x[8];
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const float2 pair = __bfloat1622float2(pairs[e]);
        x[2 * e] = pair.x;
        x[2 * e + 1] = pair.y;
      }
      float largest = state.largest;
#pragma unroll
      for (int e = 0; e < 8; ++e) largest = fmaxf(largest, x[e]);
      float sum = state.sum * __expf(state.largest - largest);
#pragma unroll
      for (int e = 0; e < 8; ++e) sum += __expf(x[e] - largest);
      state = {largest, sum};
    }
    for (int offset = 16; offset > 0; offset /= 2) {
      const Online other{__shfl_xor_sync(0xffffffffu, state.largest, offset), __shfl_xor_sync(0xffffffffu, state.sum, offset)};
      state = join(state, other);
    }
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = state;
    __syncthreads();
    if (threadIdx.x == 0) {
      for (int w = 1; w < kThreads / 32; ++w) state = join(state, warps[w]);
      quarter[side] = state;
      // The one block that has the target.
      const int target = static_cast<int>(targets[token]) - rank * kPart;
      picked[side] = target >= 0 && target < kPart ? __bfloat162float(part[target]) : 0.0f;
    }
    cluster.sync();
    if (rank == 0 && threadIdx.x == 0) {
      Online all{kLowest, 0.0f};
      float logit = 0.0f;
      for (int b = 0; b < kBlocks; ++b) {
        all = join(all, *cluster.map_shared_rank(quarter + side, b));
        logit += *cluster.map_shared_rank(picked + side, b);
      }
      loss[token] = logf(all.sum) + all.largest - logit;
    }
  }
  cluster.sync();  // Nobody leaves while others read.
}
