// Cross-entropy over 128256 classes for bf16, in two designs by the number of tokens:
//   fewer than 4224   ce_split: eight blocks a token; whoever finishes a token last (a ticket a token)
//                     merges the parts, always in the same order
//   else              ce_rows: 528 persistent blocks with consecutive tokens each. A ring of four
//                     cp.async stages runs on across tokens. Losses are held in shared memory, and
//                     written 64 at a time.
// Both keep a running maximum and sum (online softmax). Rows are 16032 vectors of 16 bytes, aligned.
#include <cuda_bf16.h>

using bf16 = __nv_bfloat16;

constexpr unsigned kAll = 0xffffffffu;
constexpr int kVocab = 128256;
constexpr int kVectors = kVocab / 8;
constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

__device__ __forceinline__ void copy16(void* shared, const void* global, int bytes) {
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(global), "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int kPending>
__device__ __forceinline__ void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

struct Partial {
  float largest, sum;
};

// Logits are finite, so that of two parts at most one is empty wherever the result is used.
__device__ __forceinline__ Partial merged(const Partial& a, const Partial& b) {
  Partial r;
  r.largest = fmaxf(a.largest, b.largest);
  r.sum = a.sum * __expf(a.largest - r.largest) + b.sum * __expf(b.largest - r.largest);
  return r;
}

template <int kLanes>
__device__ __forceinline__ Partial lanes_merged(Partial p) {
#pragma unroll
  for (int offset = kLanes / 2; offset > 0; offset /= 2) {
    Partial other;
    other.largest = __shfl_down_sync(kAll, p.largest, offset);
    other.sum = __shfl_down_sync(kAll, p.sum, offset);
    p = merged(p, other);
  }
  return p;  // Whole on lane 0.
}

__device__ __forceinline__ void take(Partial& p, const uint4& v) {
  const unsigned u[4] = {v.x, v.y, v.z, v.w};
  float f[8];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    f[2 * i] = __uint_as_float(u[i] << 16);
    f[2 * i + 1] = __uint_as_float(u[i] & 0xffff0000u);
  }
  float largest = p.largest;
#pragma unroll
  for (int i = 0; i < 8; ++i) largest = fmaxf(largest, f[i]);
  float sum = p.sum * __expf(p.largest - largest);
#pragma unroll
  for (int i = 0; i < 8; ++i) sum += __expf(f[i] - largest);
  p.largest = largest;
  p.sum = sum;
}

__device__ __forceinline__ float loss_of(const Partial& p, const bf16* __restrict__ logits,
                                         long long target, long long token) {
  return logf(p.sum) + (p.largest - __bfloat162float(logits[token * kVocab + target]));
}

// --- few tokens
constexpr int kParts = 8;
constexpr int kPartVectors = kVectors / kParts;  // 2004, nothing remains.

extern "C" __global__ void __launch_bounds__(kThreads)
ce_split(const bf16* __restrict__ logits, const long long* __restrict__ targets,
         float* __restrict__ loss, float2* partial, unsigned* tickets) {
  __shared__ Partial parts[kWarps];
  const int tid = threadIdx.x;
  const int lane = tid & 31;
  const int warp = tid >> 5;
  const int part = blockIdx.x;
  const long long token = blockIdx.y;
  const uint4* row = reinterpret_cast<const uint4*>(logits + token * kVocab) + part * kPartVectors;
  Partial mine = {-INFINITY, 0.0f};
  for (int j = tid; j < kPartVectors; j += kThreads) take(mine, __ldg(row + j));
  mine = lanes_merged<32>(mine);
  if (lane == 0) parts[warp] = mine;
  __syncthreads();
  if (warp == 0) {
    mine = parts[lane % kWarps];
    mine = lanes_merged<kWarps>(mine);
    unsigned ticket = 0;
    if (lane == 0) {
      __stcg(partial + token * kParts + part, make_float2(mine.largest, mine.sum));
      __threadfence();
      ticket = atomicAdd(tickets + token, 1u);
      __threadfence();
    }
    if (__shfl_sync(kAll, ticket, 0) == kParts - 1) {
      __syncwarp();
      const float2 p = __ldcg(partial + token * kParts + lane % kParts);
      mine = lanes_merged<kParts>(Partial{p.x, p.y});
      if (lane == 0) loss[token] = loss_of(mine, logits, targets[token], token);
    }
  }
}

// --- many tokens
constexpr int kStages = 4;
constexpr int kEach = 2;  // Vectors of a thread in a stage.
constexpr int kTiles = 32;
constexpr int kHeld = 64;
static_assert(kTiles * kEach * kThreads >= kVectors);
static_assert(kTiles % kStages == 0, "a token starts at stage 0");

extern "C" __global__ void __launch_bounds__(kThreads)
ce_rows(const bf16* __restrict__ logits, const long long* __restrict__ targets,
        float* __restrict__ loss, long long tokens) {
  __shared__ uint4 ring[kStages][kEach * kThreads];
  __shared__ Partial parts[2][kWarps];
  __shared__ float held[kHeld];
  const int tid = threadIdx.x;
  const int lane = tid & 31;
  const int warp = tid >> 5;
  const long long begin = tokens * blockIdx.x / gridDim.x;
  const long long end = tokens * (blockIdx.x + 1LL) / gridDim.x;

  // Each thread reads what it copied itself: no barriers, and a stage may be overwritten once its
  // owner has read it.
  auto fetch = [&](long long token, int tile) {
    if (token < end) {
      const uint4* row = reinterpret_cast<const uint4*>(logits + token * kVocab);
#pragma unroll
      for (int q = 0; q < kEach; ++q) {
        const int j = (tile * kEach + q) * kThreads + tid;
        if (j < kVectors) copy16(&ring[tile % kStages][q * kThreads + tid], row + j, 16);
      }
    }
    commit_copies();
  };
  for (int t = 0; t < kStages - 1; ++t) fetch(begin, t);

  int turn = 0;
  int count = 0;  // Losses held; warp 0 uses it.
  for (long long token = begin; token < end; ++token) {
    Partial mine = {-INFINITY, 0.0f};
    for (int t = 0; t < kTiles; ++t) {
      const int ahead = t + kStages - 1;
      if (ahead < kTiles) {
        fetch(token, ahead);
      } else {
        fetch(token + 1, ahead - kTiles);
      }
      wait_copies<kStages - 1>();
#pragma unroll
      for (int q = 0; q < kEach; ++q) {
        if ((t * kEach + q) * kThreads + tid < kVectors)
          take(mine, ring[t % kStages][q * kThreads + tid]);
      }
    }
    mine = lanes_merged<32>(mine);
    if (lane == 0) parts[turn][warp] = mine;
    __syncthreads();
    if (warp == 0) {
      const Partial all = lanes_merged<kWarps>(parts[turn][lane % kWarps]);
      if (lane == 0) held[count] = loss_of(all, logits, targets[token], token);
      ++count;
      if (count == kHeld || token + 1 == end) {
        __syncwarp();
        for (int i = lane; i < count; i += 32) loss[token + 1 - count + i] = held[i];
        count = 0;
        __syncwarp();
      }
    }
    turn ^= 1;  // Who writes these parts again has passed a barrier that warp 0 reached after reading.
  }
}
