// Cross-entropy of each token. Small vocabularies: a warp a token, the row in registers. Large ones:
// persistent blocks with an online sum; few tokens: each row in splits of 2048 classes.
#include <cuda_bf16.h>

using T = __nv_bfloat16;

constexpr int kBlock = 512;
constexpr int kSplit = 2048;
constexpr int kMostSplits = 128;  // 262144 / kSplit
constexpr float kLowest = -3.402823466e38f;

// log(sum(exp)) in the making: sum is relative to top.
struct Online {
  float top = kLowest, sum = 0.0f;

  __device__ __forceinline__ void one(float x) {
    const float higher = fmaxf(top, x);
    sum = sum * expf(top - higher) + expf(x - higher);
    top = higher;
  }
  __device__ __forceinline__ void eight(const uint4& bits) {
    const __nv_bfloat162* pairs = reinterpret_cast<const __nv_bfloat162*>(&bits);
    const float2 a = __bfloat1622float2(pairs[0]), b = __bfloat1622float2(pairs[1]);
    const float2 c = __bfloat1622float2(pairs[2]), d = __bfloat1622float2(pairs[3]);
    const float largest = fmaxf(fmaxf(fmaxf(a.x, a.y), fmaxf(b.x, b.y)),
                                fmaxf(fmaxf(c.x, c.y), fmaxf(d.x, d.y)));
    if (largest > top) {
      sum *= expf(top - largest);
      top = largest;
    }
    sum += ((expf(a.x - top) + expf(a.y - top)) + (expf(b.x - top) + expf(b.y - top))) +
           ((expf(c.x - top) + expf(c.y - top)) + (expf(d.x - top) + expf(d.y - top)));
  }
  __device__ __forceinline__ void merge(float other_top, float other_sum) {
    const float higher = fmaxf(top, other_top);
    sum = sum * expf(top - higher) + other_sum * expf(other_top - higher);
    top = higher;
  }
  __device__ __forceinline__ void over_warp() {
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2)
      merge(__shfl_xor_sync(0xffffffffu, top, offset), __shfl_xor_sync(0xffffffffu, sum, offset));
  }
};

// One thread's share of `count` classes.
template <int kThreads>
__device__ __forceinline__ Online span(const T* from, long long count, int thread) {
  Online online;
  const unsigned past = static_cast<unsigned>(reinterpret_cast<unsigned long long>(from) & 15u);
  long long head = ((16u - past) & 15u) / sizeof(T);
  if (head > count) head = count;
  for (long long v = thread; v < head; v += kThreads) online.one(__bfloat162float(from[v]));
  const uint4* vectors = reinterpret_cast<const uint4*>(from + head);
  const long long whole = (count - head) / 8;
  const long long deep = whole / (4 * kThreads) * (4 * kThreads);
  for (long long i = thread; i < deep; i += 4 * kThreads) {
    const uint4 a = vectors[i], b = vectors[i + kThreads];
    const uint4 c = vectors[i + 2 * kThreads], d = vectors[i + 3 * kThreads];
    online.eight(a);
    online.eight(b);
    online.eight(c);
    online.eight(d);
  }
  for (long long i = deep + thread; i < whole; i += kThreads) online.eight(vectors[i]);
  for (long long v = head + whole * 8 + thread; v < count; v += kThreads)
    online.one(__bfloat162float(from[v]));
  return online;
}

extern "C" __global__ void __launch_bounds__(256)
    ce_warp(const T* __restrict__ logits, const long long* __restrict__ targets,
            float* __restrict__ loss, long long tokens, long long vocab) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (long long token = static_cast<long long>(blockIdx.x) * 8 + warp; token < tokens;
       token += static_cast<long long>(gridDim.x) * 8) {
    const T* row = logits + token * vocab;
    float held[32];
    float top = kLowest;
#pragma unroll
    for (int e = 0; e < 32; ++e) {
      const int v = e * 32 + lane;
      held[e] = v < vocab ? __bfloat162float(row[v]) : 0.0f;
      if (v < vocab) top = fmaxf(top, held[e]);
    }
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2)
      top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, offset));
    float sum = 0.0f;
#pragma unroll
    for (int e = 0; e < 32; ++e)
      if (e * 32 + lane < vocab) sum += expf(held[e] - top);
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    if (lane == 0) loss[token] = logf(sum) + (top - __bfloat162float(row[targets[token]]));
  }
}

extern "C" __global__ void __launch_bounds__(kBlock)
    ce_block(const T* __restrict__ logits, const long long* __restrict__ targets,
             float* __restrict__ loss, long long tokens, long long vocab) {
  __shared__ float tops[2][kBlock / 32], sums[2][kBlock / 32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int turn = 0;
  for (long long token = blockIdx.x; token < tokens; token += gridDim.x, turn ^= 1) {
    const T* row = logits + token * vocab;
    Online online = span<kBlock>(row, vocab, threadIdx.x);
    online.over_warp();
    if (lane == 0) {
      tops[turn][warp] = online.top;
      sums[turn][warp] = online.sum;
    }
    __syncthreads();
    if (warp == 0) {
      Online all;
      if (lane < kBlock / 32) all.merge(tops[turn][lane], sums[turn][lane]);
      all.over_warp();
      if (lane == 0) {
        const float target = __bfloat162float(
            logits[static_cast<unsigned>(token) * static_cast<unsigned>(vocab) +
                   static_cast<unsigned>(targets[token])]);
        loss[token] = logf(all.sum) + (all.top - target);
      }
    }
  }
}

extern "C" __global__ void __launch_bounds__(256)
    ce_split(const T* __restrict__ logits, float* __restrict__ top, float* __restrict__ sum,
             long long vocab) {
  __shared__ float tops[8], sums[8];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const long long token = blockIdx.y, begin = static_cast<long long>(blockIdx.x) * kSplit;
  Online online = span<256>(logits + token * vocab + begin,
                            min(vocab - begin, static_cast<long long>(kSplit)), threadIdx.x);
  online.over_warp();
  if (lane == 0) {
    tops[warp] = online.top;
    sums[warp] = online.sum;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w < 8; ++w) online.merge(tops[w], sums[w]);
    top[token * kMostSplits + blockIdx.x] = online.top;
    sum[token * kMostSplits + blockIdx.x] = online.sum;
  }
}

// A warp a token.
extern "C" __global__ void ce_combine(const T* __restrict__ logits,
                                      const long long* __restrict__ targets,
                                      const float* __restrict__ top, const float* __restrict__ sum,
                                      float* __restrict__ loss, long long vocab) {
  const long long token = blockIdx.x;
  const int splits = static_cast<int>((vocab + kSplit - 1) / kSplit);
  Online online;
  for (int split = threadIdx.x; split < splits; split += 32)
    online.merge(top[token * kMostSplits + split], sum[token * kMostSplits + split]);
  online.over_warp();
  if (threadIdx.x == 0) {
    const float target = __bfloat162float(logits[token * vocab + targets[token]]);
    loss[token] = logf(online.sum) + (online.top - target);
  }
}
