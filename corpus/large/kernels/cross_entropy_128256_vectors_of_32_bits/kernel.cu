// Cross-entropy over a large vocabulary: one block a token, a single online pass over the logits,
// 16-byte loads, the states of the threads merged at the end.
#include <cuda_bf16.h>

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr unsigned kAll = 0xffffffffu;

struct State {
  float top;  // the largest so far
  float sum;  // of exp(x - top)
};

__device__ __forceinline__ float minus_infinity() { return __int_as_float(0xff800000); }

__device__ __forceinline__ void push(State& s, float x) {
  if (x > s.top) {
    s.sum *= __expf(s.top - x);
    s.top = x;
  }
  s.sum += __expf(x - s.top);
}

__device__ __forceinline__ void push8(State& s, const uint4 raw) {
  const unsigned word[4] = {raw.x, raw.y, raw.z, raw.w};
  float x[8];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    x[2 * i] = __uint_as_float(word[i] << 16);
    x[2 * i + 1] = __uint_as_float(word[i] & 0xffff0000u);
  }
  float top = x[0];
#pragma unroll
  for (int i = 1; i < 8; ++i) top = fmaxf(top, x[i]);
  if (top > s.top) {
    s.sum *= __expf(s.top - top);
    s.top = top;
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) s.sum += __expf(x[i] - s.top);
}

__device__ __forceinline__ State merge(const State a, const State b) {
  State s;
  s.top = fmaxf(a.top, b.top);
  if (s.top == minus_infinity()) {
    s.sum = 0.0f;  // neither has seen an element
  } else {
    s.sum = a.sum * __expf(a.top - s.top) + b.sum * __expf(b.top - s.top);
  }
  return s;
}

__device__ __forceinline__ State merge_warp(State s) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    State other;
    other.top = __shfl_xor_sync(kAll, s.top, offset);
    other.sum = __shfl_xor_sync(kAll, s.sum, offset);
    s = merge(s, other);
  }
  return s;
}

extern "C" __global__ void __launch_bounds__(kThreads)
    cross_entropy(const __nv_bfloat16* __restrict__ logits, const long long* __restrict__ targets,
                  float* __restrict__ loss, int vocab) {
  __shared__ State of_warp[kWarps];
  const long long token = blockIdx.x;
  const int tid = threadIdx.x;
  const __nv_bfloat16* row = logits + token * vocab;

  // Rows of an odd vocabulary start anywhere: up to 7 elements before the first 16-byte boundary.
  const int misaligned = static_cast<int>(reinterpret_cast<unsigned long long>(row) & 15);
  int head = ((16 - misaligned) & 15) / 2;
  if (head > vocab) head = vocab;
  const int body = (vocab - head) / 8;
  const uint4* vec = vocab % 8 == 0 ? reinterpret_cast<const uint4*>(logits) + static_cast<unsigned>(blockIdx.x) * static_cast<unsigned>(vocab / 8)
                                    : reinterpret_cast<const uint4*>(row + head);

  State s;
  s.top = minus_infinity();
  s.sum = 0.0f;
  if (tid < head) push(s, __bfloat162float(row[tid]));
  int i = tid;
  if (vocab >= 32768) {
    // Long rows: four loads in flight.
    for (; i + 3 * kThreads < body; i += 4 * kThreads) {
      const uint4 a = vec[i];
      const uint4 b = vec[i + kThreads];
      const uint4 c = vec[i + 2 * kThreads];
      const uint4 d = vec[i + 3 * kThreads];
      push8(s, a);
      push8(s, b);
      push8(s, c);
      push8(s, d);
    }
  }
  for (; i < body; i += kThreads) push8(s, vec[i]);
  for (int j = head + body * 8 + tid; j < vocab; j += kThreads) push(s, __bfloat162float(row[j]));

  s = merge_warp(s);
  if (tid % 32 == 0) of_warp[tid / 32] = s;
  __syncthreads();
  if (tid >= 32) return;
  if (tid < kWarps) {
    s = of_warp[tid];
  } else {
    s.top = minus_infinity();
    s.sum = 0.0f;
  }
  s = merge_warp(s);
  if (tid == 0) loss[token] = logf(s.sum) + (s.top - __bfloat162float(row[targets[token]]));
}
