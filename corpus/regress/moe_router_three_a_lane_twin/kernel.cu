// Logits by warps, eight experts each; then one warp a token. Up to eight chosen: lanes keep their three best in
// registers, sorted, and the warp takes the best head each round. More: rounds over all, with a mask of what is taken.
#include <cuda_bf16.h>

constexpr unsigned kAll = 0xffffffffu;
constexpr int kEach = 8;
constexpr int kKept = 3;

__device__ __forceinline__ float lowest() { return __int_as_float(0xff800000); }

struct Entry {
  float logit;
  int index;  // -1: none
};

// a comes before b: the larger logit, the lower index where they are equal.
__device__ __forceinline__ bool before(Entry a, Entry b) {
  if (a.index < 0) return false;
  if (b.index < 0) return true;
  return a.logit > b.logit || (a.logit == b.logit && a.index < b.index);
}

__device__ __forceinline__ Entry warp_best(Entry best) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    Entry other;
    other.logit = __shfl_xor_sync(kAll, best.logit, offset);
    other.index = __shfl_xor_sync(kAll, best.index, offset);
    if (before(other, best)) best = other;
  }
  return best;
}

extern "C" __global__ void __launch_bounds__(256)
score(const __nv_bfloat16* __restrict__ x, const __nv_bfloat16* __restrict__ weight, float* __restrict__ logits,
      long long tokens, long long hidden, long long experts) {
  const long long groups = (experts + kEach - 1) / kEach;
  const long long item = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (item >= tokens * groups) return;
  const long long token = item / groups;
  const long long first = item % groups * kEach;
  const int count = experts - first < kEach ? static_cast<int>(experts - first) : kEach;
  const __nv_bfloat16* row = x + token * hidden;
  float sum[kEach];
#pragma unroll
  for (int e = 0; e < kEach; ++e) sum[e] = 0.0f;
  if (hidden % 2 == 0) {
    const __nv_bfloat162* pairs = reinterpret_cast<const __nv_bfloat162*>(row);
    for (long long h = threadIdx.x; h < hidden / 2; h += 32) {
      const float2 value = __bfloat1622float2(pairs[h]);
#pragma unroll
      for (int e = 0; e < kEach; ++e) {
        if (e >= count) break;
        const float2 w = __bfloat1622float2(
            reinterpret_cast<const __nv_bfloat162*>(weight + (first + e) * hidden)[h]);
        sum[e] = fmaf(value.x, w.x, sum[e]);
        sum[e] = fmaf(value.y, w.y, sum[e]);
      }
    }
  } else {
    for (long long h = threadIdx.x; h < hidden; h += 32) {
      const float value = __bfloat162float(row[h]);
#pragma unroll
      for (int e = 0; e < kEach; ++e) {
        if (e >= count) break;
        sum[e] = fmaf(value, __bfloat162float(weight[(first + e) * hidden + h]), sum[e]);
      }
    }
  }
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    float all = sum[e];
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) all += __shfl_xor_sync(kAll, all, offset);
    if (threadIdx.x == 0 && e < count) logits[token * experts + first + e] = all;
  }
}

// The lane's best `kKept` experts that come after `last`, best first.
__device__ __forceinline__ void keep_best(const float* __restrict__ logits, int experts, Entry last, bool any,
                                          Entry (&kept)[kKept]) {
#pragma unroll
  for (int i = 0; i < kKept; ++i) kept[i] = {lowest(), -1};
  for (int e = threadIdx.x; e < experts; e += 32) {
    Entry next{logits[e], e};
    if (!any && !before(last, next)) continue;
#pragma unroll
    for (int i = 0; i < kKept; ++i) {
      if (before(next, kept[i])) {
        const Entry moved = kept[i];
        kept[i] = next;
        next = moved;
      }
    }
  }
}

extern "C" __global__ void __launch_bounds__(128)
choose_few(const float* __restrict__ logits, int* __restrict__ expert, float* __restrict__ share, long long tokens,
           long long experts, long long chosen) {
  const long long token = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (token >= tokens) return;
  const float* row = logits + token * experts;
  const int lane = threadIdx.x;
  Entry kept[kKept];
  keep_best(row, static_cast<int>(experts), {0.0f, 0}, true, kept);
  Entry mine{0.0f, 0};
  float first = 0.0f, total = 0.0f;
  for (int round = 0; round < chosen; ++round) {
    const Entry best = warp_best(kept[0]);
    if (round == 0) first = best.logit;
    total += expf(best.logit - first);
    if (lane == round) mine = best;
    if (kept[0].index == best.index) {
#pragma unroll
      for (int i = 0; i + 1 < kKept; ++i) kept[i] = kept[i + 1];
      kept[kKept - 1] = {lowest(), -1};
      // Rarely: the lane's three are gone, so it looks for those that come after the last.
      if (kept[0].index < 0) keep_best(row, static_cast<int>(experts), best, false, kept);
    }
    __syncwarp();
  }
  if (lane < chosen) {
    expert[token * chosen + lane] = mine.index;
    share[token * chosen + lane] = expf(mine.logit - first) / total;
  }
}

extern "C" __global__ void __launch_bounds__(128)
choose_many(const float* __restrict__ logits, int* __restrict__ expert, float* __restrict__ share, long long tokens,
            long long experts, long long chosen) {
  const long long token = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (token >= tokens) return;
  const float* row = logits + token * experts;
  const int lane = threadIdx.x;
  unsigned taken = 0;  // bit i: expert lane + 32 i
  Entry low{0.0f, 0}, high{0.0f, 0};
  float first = 0.0f, total = 0.0f;
  for (int round = 0; round < chosen; ++round) {
    Entry best{lowest(), -1};
    for (int i = 0; lane + 32 * i < experts; ++i) {
      if (taken >> i & 1) continue;
      const Entry next{row[lane + 32 * i], lane + 32 * i};
      if (before(next, best)) best = next;
    }
    __syncwarp();
    best = warp_best(best);
    if (round == 0) first = best.logit;
    total += expf(best.logit - first);
    if (best.index % 32 == lane) taken |= 1u << (best.index / 32);
    if (round == lane) low = best;
    if (round == lane + 32) high = best;
  }
  if (lane < chosen) {
    expert[token * chosen + lane] = low.index;
    share[token * chosen + lane] = expf(low.logit - first) / total;
  }
  if (lane + 32 < chosen) {
    expert[token * chosen + lane + 32] = high.index;
    share[token * chosen + lane + 32] = expf(high.logit - first) / total;
  }
}
