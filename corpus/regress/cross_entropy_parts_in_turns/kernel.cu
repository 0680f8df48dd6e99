// Cross-entropy in bf16. Up to 1024 classes take a warp a token (two tokens at a time where there are many), up to 16384
// a block a token in runs of tokens, more are split into parts of 16384 which the last one to come joins in order.
#include <cuda_bf16.h>

using T = __nv_bfloat16;
using i64 = long long;

constexpr unsigned kAll = 0xffffffffu;
constexpr int kThreads = 256;
constexpr int kPart = 16384;
constexpr int kMany = 16384;   // tokens from which warps take two
constexpr int kCached = 128;   // targets in shared memory

__device__ __forceinline__ float minus_infinity() { return __int_as_float(0xff800000); }
__device__ __forceinline__ bool aligned(const void* p) { return (reinterpret_cast<unsigned long long>(p) & 15) == 0; }

__device__ __forceinline__ void unpack(const uint4& bits, float* f) {
  const unsigned word[4] = {bits.x, bits.y, bits.z, bits.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    f[2 * i] = __uint_as_float(word[i] << 16);
    f[2 * i + 1] = __uint_as_float(word[i] & 0xffff0000u);
  }
}

// The largest of some logits, and the sum of exp(logit - largest).
struct Sum {
  float largest;
  float sum;
};

__device__ __forceinline__ Sum join(Sum a, Sum b) {
  Sum both;
  both.largest = fmaxf(a.largest, b.largest);
  both.sum = 0.0f;
  if (a.sum > 0.0f) both.sum += a.sum * expf(a.largest - both.largest);
  if (b.sum > 0.0f) both.sum += b.sum * expf(b.largest - both.largest);
  return both;
}

__device__ __forceinline__ Sum join_warp(Sum mine) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    Sum other;
    other.largest = __shfl_down_sync(kAll, mine.largest, offset);
    other.sum = __shfl_down_sync(kAll, mine.sum, offset);
    mine = join(mine, other);
  }
  return mine;
}

__device__ __forceinline__ void add(Sum& to, float logit) {
  if (logit > to.largest) {
    to.sum = to.sum * expf(to.largest - logit) + 1.0f;
    to.largest = logit;
  } else if (to.largest > minus_infinity()) {
    to.sum += expf(logit - to.largest);
  }
}

__device__ __forceinline__ void add(Sum& to, const uint4& bits) {
  float f[8];
  unpack(bits, f);
  float most = f[0];
#pragma unroll
  for (int e = 1; e < 8; ++e) most = fmaxf(most, f[e]);
  if (most == minus_infinity()) return;
  if (most > to.largest) {
    to.sum *= expf(to.largest - most);
    to.largest = most;
  }
#pragma unroll
  for (int e = 0; e < 8; ++e) to.sum += expf(f[e] - to.largest);
}

// A block's share of `count` logits: single ones up to a boundary of 16 bytes, vectors, and the rest.
__device__ __forceinline__ Sum scan(const T* from, int count) {
  const int thread = threadIdx.x;
  Sum mine = {minus_infinity(), 0.0f};
  const int apart = static_cast<int>(reinterpret_cast<unsigned long long>(from) & 15) / 2;
  const int head = min(count, (8 - apart) % 8);
  if (thread < head) add(mine, __bfloat162float(from[thread]));
  const uint4* body = reinterpret_cast<const uint4*>(from + head);
  const int vectors = (count - head) / 8;
  for (int i = thread; i < vectors; i += kThreads) add(mine, body[i]);
  const int done = head + vectors * 8;
  if (thread < count - done) add(mine, __bfloat162float(from[done + thread]));
  return mine;
}

// Thread 0's result counts.
__device__ __forceinline__ Sum join_block(Sum mine, Sum* shared) {
  mine = join_warp(mine);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = mine;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int i = 1; i < kThreads / 32; ++i) mine = join(mine, shared[i]);
  }
  __syncthreads();
  return mine;
}

__device__ __forceinline__ void load_row(const T* row, int vocab, bool vectors, int lane, float (&f)[32]) {
  if (vectors) {
#pragma unroll
    for (int v = 0; v < 4; ++v) {
      const int i = v * 32 + lane;
      uint4 bits = make_uint4(0xff80ff80u, 0xff80ff80u, 0xff80ff80u, 0xff80ff80u);  // -infinity
      if (i * 8 < vocab) bits = reinterpret_cast<const uint4*>(row)[i];
      unpack(bits, f + 8 * v);
    }
  } else {
#pragma unroll
    for (int e = 0; e < 32; ++e) {
      const int i = e * 32 + lane;
      f[e] = i < vocab ? __bfloat162float(row[i]) : minus_infinity();
    }
  }
}

__device__ __forceinline__ Sum sum_row(const float (&f)[32]) {
  float largest = f[0];
#pragma unroll
  for (int e = 1; e < 32; ++e) largest = fmaxf(largest, f[e]);
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) largest = fmaxf(largest, __shfl_xor_sync(kAll, largest, offset));
  float sum = 0.0f;
#pragma unroll
  for (int e = 0; e < 32; ++e) sum += expf(f[e] - largest);
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(kAll, sum, offset);
  return {largest, sum};
}

__device__ __forceinline__ float loss_of(Sum all, T target) {
  return logf(all.sum) + (all.largest - __bfloat162float(target));
}

extern "C" __global__ void __launch_bounds__(kThreads)
    cross_entropy_warp(const T* logits, const i64* targets, float* loss, int tokens, int vocab) {
  const int lane = threadIdx.x % 32;
  const bool vectors = vocab % 8 == 0 && aligned(logits);
  const int warp = blockIdx.x * (kThreads / 32) + threadIdx.x / 32;
  const int warps = gridDim.x * (kThreads / 32);
  if (tokens >= kMany) {
    const int pairs = (tokens + 1) / 2;
    for (int pair = warp; pair < pairs; pair += warps) {
      const i64 one = 2 * pair;
      const i64 two = min(2 * pair + 1, tokens - 1);
      float f[32], g[32];
      load_row(logits + one * vocab, vocab, vectors, lane, f);
      load_row(logits + two * vocab, vocab, vectors, lane, g);
      const Sum sum_one = sum_row(f);
      const Sum sum_two = sum_row(g);
      if (lane == 0) loss[one] = loss_of(sum_one, logits[one * vocab + targets[one]]);
      if (lane == 1 && two > one) loss[two] = loss_of(sum_two, logits[two * vocab + targets[two]]);
    }
    return;
  }
  for (i64 token = warp; token < tokens; token += warps) {
    float f[32];
    load_row(logits + token * vocab, vocab, vectors, lane, f);
    const Sum sum = sum_row(f);
    if (lane == 0) loss[token] = loss_of(sum, logits[token * vocab + targets[token]]);
  }
}

// A block a run of tokens.
extern "C" __global__ void __launch_bounds__(kThreads)
    cross_entropy_block(const T* logits, const i64* targets, float* loss, int tokens, int vocab) {
  __shared__ Sum shared[kThreads / 32];
  __shared__ int cached[kCached];
  const int run = (tokens + gridDim.x - 1) / gridDim.x;
  const i64 begin = static_cast<i64>(blockIdx.x) * run;
  const int count = static_cast<int>(min(static_cast<i64>(run), tokens - begin));
  for (int i = 0; i < count; ++i) {
    if (i % kCached == 0) {
      __syncthreads();
      if (threadIdx.x < kCached && i + static_cast<int>(threadIdx.x) < count)
        cached[threadIdx.x] = static_cast<int>(targets[begin + i + threadIdx.x]);
      __syncthreads();
    }
    const T* row = logits + (begin + i) * vocab;
    const Sum sum = join_block(scan(row, vocab), shared);
    if (threadIdx.x == 0) loss[begin + i] = loss_of(sum, row[cached[i % kCached]]);
  }
}

// A block a part of a token's classes, turns of the whole grid.
extern "C" __global__ void __launch_bounds__(kThreads)
    cross_entropy_parts(const T* logits, const i64* targets, float* partials, int* tickets, float* loss, int tokens,
                        int vocab) {
  float2* parts_of = reinterpret_cast<float2*>(partials);
  __shared__ Sum shared[kThreads / 32];
  const int parts = (vocab + kPart - 1) / kPart;
  const int tasks = tokens * parts;  // at most 2^24
  for (int task = blockIdx.x; task < tasks; task += gridDim.x) {
    const i64 token = task / parts;
    const int part = task % parts;
    const int first = part * kPart;
    const T* row = logits + token * vocab;
    const Sum sum = join_block(scan(row + first, min(vocab - first, kPart)), shared);
    if (threadIdx.x == 0) {
      parts_of[task] = make_float2(sum.largest, sum.sum);
      __threadfence();
      if (atomicAdd(&tickets[token], 1) == parts - 1) {
        __threadfence();
        Sum all = {minus_infinity(), 0.0f};
        for (int p = 0; p < parts; ++p) {
          const float2 other = __ldcg(&parts_of[token * parts + p]);
          all = join(all, {other.x, other.y});
        }
        loss[token] = loss_of(all, logits[token * vocab + targets[token]]);
      }
    }
  }
}
