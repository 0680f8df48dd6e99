// Router: logits by tiles of 64 tokens and 64 experts (two buffers in shared memory, sums of 4,096 terms that are added up in turn),
// the best of a token by a warp with its logits in registers, and the shares by a thread each.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = __nv_bfloat16;

constexpr int kTile = 64, kDepth = 32, kThreads = 256, kStride = kTile + 4;
constexpr int kChunk = 4096;     // terms of a sum before it goes to the total
constexpr unsigned kAll = 0xffffffffu;

// Eight elements of a row from `column` on, zeros past its end.
template <bool kVector>
__device__ __forceinline__ void fetch(const T* __restrict__ matrix, int row, int rows, int column, int hidden, float (&v)[8]) {
  const T* from = matrix + static_cast<long long>(row) * hidden + column;
  if constexpr (kVector) {
    uint4 bits = make_uint4(0u, 0u, 0u, 0u);
    if (row < rows && column < hidden) bits = *reinterpret_cast<const uint4*>(from);
    const __nv_bfloat162* pairs = reinterpret_cast<const __nv_bfloat162*>(&bits);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 two = __bfloat1622float2(pairs[i]);
      v[2 * i] = two.x;
      v[2 * i + 1] = two.y;
    }
  } else {
#pragma unroll
    for (int i = 0; i < 8; ++i) v[i] = row < rows && column + i < hidden ? __bfloat162float(from[i]) : 0.0f;
  }
}

template <bool kVector>
__global__ void __launch_bounds__(kThreads) score(const T* __restrict__ x, const T* __restrict__ weight, float* __restrict__ logits,
                                                  int tokens, int experts, int hidden) {
  __shared__ __align__(16) float left[2][kDepth][kStride];
  __shared__ __align__(16) float right[2][kDepth][kStride];
  const int e0 = blockIdx.x * kTile, t0 = blockIdx.y * kTile;
  const int row = threadIdx.x / 4, column = threadIdx.x % 4 * 8;         // what it loads
  const int ty = threadIdx.x / 16 * 4, tx = threadIdx.x % 16 * 4;        // what it computes
  float part[4][4] = {}, total[4][4] = {};
  float a[8], b[8];
  const auto put = [&](int buffer) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      left[buffer][column + i][row] = a[i];
      right[buffer][column + i][row] = b[i];
    }
  };
  fetch<kVector>(x, t0 + row, tokens, column, hidden, a);
  fetch<kVector>(weight, e0 + row, experts, column, hidden, b);
  put(0);
  __syncthreads();
  int buffer = 0;
  for (int k0 = 0; k0 < hidden; k0 += kDepth) {
    const bool more = k0 + kDepth < hidden;
    if (more) {
      fetch<kVector>(x, t0 + row, tokens, k0 + kDepth + column, hidden, a);
      fetch<kVector>(weight, e0 + row, experts, k0 + kDepth + column, hidden, b);
    }
#pragma unroll 8
    for (int k = 0; k < kDepth; ++k) {
      const float4 l = *reinterpret_cast<const float4*>(&left[buffer][k][ty]);
      const float4 r = *reinterpret_cast<const float4*>(&right[buffer][k][tx]);
      const float ls[4] = {l.x, l.y, l.z, l.w}, rs[4] = {r.x, r.y, r.z, r.w};
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) part[i][j] += ls[i] * rs[j];
    }
    if ((k0 + kDepth) % kChunk == 0) {
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          total[i][j] += part[i][j];
          part[i][j] = 0.0f;
        }
    }
    if (more) put(buffer ^ 1);
    __syncthreads();
    buffer ^= 1;
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int token = t0 + ty + i;
    if (token >= tokens) break;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int e = e0 + tx + j;
      if (e < experts) logits[static_cast<long long>(token) * experts + e] = total[i][j] + part[i][j];
    }
  }
}

// Bits whose order as an unsigned number is that of the floats.
__device__ __forceinline__ unsigned ordered(float v) {
  const unsigned bits = __float_as_uint(v);
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

__device__ __forceinline__ float unordered(unsigned key) {
  return __uint_as_float((key & 0x80000000u) != 0 ? key ^ 0x80000000u : ~key);
}

// A warp a token, kEach logits a lane; blocks go on until all tokens are done.
template <int kEach>
__global__ void __launch_bounds__(kThreads) pick(const float* __restrict__ logits, int* __restrict__ expert, float2* __restrict__ norm,
                                                 int tokens, int experts, int chosen) {
  const int lane = threadIdx.x & 31;
  unsigned valid = 0;      // a bit for each of the lane's experts
#pragma unroll
  for (int i = 0; i < kEach; ++i)
    if (lane + 32 * i < experts) valid |= 1u << i;
  for (int token = blockIdx.x * (kThreads / 32) + (threadIdx.x >> 5); token < tokens; token += gridDim.x * (kThreads / 32)) {
    const float* mine = logits + static_cast<long long>(token) * experts;
    unsigned key[kEach];
#pragma unroll
    for (int i = 0; i < kEach; ++i) key[i] = lane + 32 * i < experts ? ordered(mine[lane + 32 * i]) : 0u;
    unsigned left = valid;
    float top = 0.0f, total = 0.0f;
    for (int k = 0; k < chosen; ++k) {
      unsigned long long best = 0;
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        const unsigned long long candidate = static_cast<unsigned long long>(key[i]) << 32 | (kAll - (lane + 32 * i));
        if ((left >> i & 1u) != 0 && candidate > best) best = candidate;
      }
#pragma unroll
      for (int o = 16; o > 0; o >>= 1) {
        const unsigned long long other = __shfl_xor_sync(kAll, best, o);
        if (other > best) best = other;
      }
      const int e = static_cast<int>(kAll - static_cast<unsigned>(best));
      const float value = unordered(static_cast<unsigned>(best >> 32));
      if (k == 0) top = value;
      total += expf(value - top);
      if (lane == (e & 31)) left &= ~(1u << (e >> 5));
      if (lane == 0) expert[static_cast<long long>(token) * chosen + k] = e;
    }
    if (lane == 0) norm[token] = make_float2(top, total);
  }
}

// A thread a share.
extern "C" __global__ void __launch_bounds__(kThreads) shares(const float* __restrict__ logits, const int* __restrict__ expert,
                                                              const float2* __restrict__ norm, float* __restrict__ share, int tokens,
                                                              int experts, int chosen) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= tokens * chosen) return;
  const int token = i / chosen;
  const float2 of = norm[token];
  share[i] = expf(logits[static_cast<long long>(token) * experts + expert[i]] - of.x) / of.y;
}
