// Router of a mixture of experts, one cooperative launch. First the logits, in tiles of 64 tokens by 64 experts that the
// blocks take in turn; where tokens are few and the weight is large, `hidden` is split into eight as well. Then, behind a grid
// barrier, one warp a token: its logits in registers, and as many rounds of "the largest that is left" as experts are chosen.
#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace cg = cooperative_groups;
using T = ASSAY_T;

constexpr int kThreads = 256;
constexpr int kTile = 64;
constexpr int kDepth = 16;
constexpr int kMostSplits = 8;
constexpr int kSlots = 32;  // 32 lanes * 32 slots = 1024 experts
constexpr unsigned kAll = 0xffffffffu;

// One tile of logits over [begin, end) of hidden. Each thread has 4 x 4 of them.
__device__ __forceinline__ void logits_tile(const T* __restrict__ x, const T* __restrict__ weight, float* logits,
                                            float (&xs)[kDepth][kTile + 4], float (&ws)[kDepth][kTile + 4],
                                            long long first_token, int first_expert, long long begin, long long end,
                                            long long tokens, int experts, long long hidden) {
  const int down = threadIdx.x / 16 * 4;
  const int across = threadIdx.x % 16 * 4;
  float sums[4][4] = {};
  for (long long h0 = begin; h0 < end; h0 += kDepth) {
#pragma unroll
    for (int i = threadIdx.x; i < kTile * kDepth; i += kThreads) {
      const int r = i / kDepth;
      const int l = i % kDepth;
      const long long h = h0 + l;
      const long long token = first_token + r;
      const int expert = first_expert + r;
      xs[l][r] = h < end && token < tokens ? static_cast<float>(x[token * hidden + h]) : 0.0f;
      ws[l][r] = h < end && expert < experts ? static_cast<float>(weight[expert * hidden + h]) : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int l = 0; l < kDepth; ++l) {
      float left[4], right[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        left[i] = xs[l][down + i];
        right[i] = ws[l][across + i];
      }
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) sums[i][j] += left[i] * right[j];
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const long long token = first_token + down + i;
    if (token >= tokens) continue;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int expert = first_expert + across + j;
      if (expert < experts) logits[token * experts + expert] = sums[i][j];
    }
  }
}

// One warp: the best `chosen` experts of one token.
__device__ __forceinline__ void choose(const float* logits, int splits, long long stride, int* expert, float* share,
                                       int experts, int chosen, int lane) {
  float value[kSlots];
  unsigned available = 0;
#pragma unroll
  for (int i = 0; i < kSlots; ++i) {
    const int e = i * 32 + lane;
    value[i] = 0.0f;
    if (e < experts) {
      for (int s = 0; s < splits; ++s) value[i] += __ldcg(logits + s * stride + e);
      available |= 1u << i;
    }
  }
  float first = 0.0f, total = 0.0f, kept[2] = {0.0f, 0.0f};
  for (int k = 0; k < chosen; ++k) {
    int best = -1;
    float largest = 0.0f;
#pragma unroll
    for (int i = 0; i < kSlots; ++i) {
      if ((available >> i & 1u) != 0 && (best < 0 || value[i] > largest)) {
        best = i * 32 + lane;
        largest = value[i];
      }
    }
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) {
      const int other = __shfl_xor_sync(kAll, best, offset);
      const float its = __shfl_xor_sync(kAll, largest, offset);
      if (other >= 0 && (best < 0 || its > largest || (its == largest && other < best))) {
        best = other;
        largest = its;
      }
    }
    if (best >= 0 && best % 32 == lane) available &= ~(1u << (best / 32));
    if (k == 0) first = largest;
    total += expf(largest - first);
    if (k % 32 == lane) {
      if (k < 32) kept[0] = largest; else kept[1] = largest;
      expert[k] = best;
    }
  }
  if (lane < chosen) share[lane] = expf(kept[0] - first) / total;
  if (lane + 32 < chosen) share[lane + 32] = expf(kept[1] - first) / total;
}

extern "C" __global__ void __launch_bounds__(kThreads)
moe_router(const T* __restrict__ x, const T* __restrict__ weight, float* logits, int* __restrict__ expert,
           float* __restrict__ share, long long tokens, long long hidden, int experts, int chosen) {
  __shared__ float xs[kDepth][kTile + 4];
  __shared__ float ws[kDepth][kTile + 4];
  const int splits = tokens <= 64 && experts >= 64 && hidden >= 4096 ? kMostSplits : 1;
  const long long part = ((hidden + splits - 1) / splits + kDepth - 1) / kDepth * kDepth;
  const long long token_tiles = (tokens + kTile - 1) / kTile;
  const int expert_tiles = (experts + kTile - 1) / kTile;
  const long long units = token_tiles * expert_tiles * splits;
  for (long long unit = blockIdx.x; unit < units; unit += gridDim.x) {
    const int split = static_cast<int>(unit % splits);
    const long long tile = unit / splits;
    const long long begin = split * part;
    const long long end = begin + part < hidden ? begin + part : hidden;
    logits_tile(x, weight, logits + split * tokens * experts, xs, ws, tile / expert_tiles * kTile,
                static_cast<int>(tile % expert_tiles) * kTile, begin, end, tokens, experts, hidden);
  }
  cg::this_grid().sync();
  const int lane = threadIdx.x % 32;
  const long long warps = static_cast<long long>(gridDim.x) * (kThreads / 32);
  for (long long token = static_cast<long long>(blockIdx.x) * (kThreads / 32) + threadIdx.x / 32; token < tokens;
       token += warps)
    choose(logits + token * experts, splits, tokens * experts, expert + token * chosen, share + token * chosen, experts,
           chosen, lane);
}
