// Gradients of rms_norm, bf16: a persistent block a row (or two rows, where there are many), which keeps its share of
// grad_weight in registers; a second kernel adds up the shares of the blocks.
#include <cuda_bf16.h>

using T = __nv_bfloat16;
constexpr int kThreads = 512;
constexpr int kWarps = kThreads / 32;
constexpr int kColumns = 16384;  // at most
constexpr int kFlush = 128;      // turns between two flushes of the sums over tokens

// As the grids of launch.json.
__device__ __forceinline__ int blocks_of(int tokens) { return tokens >= 65536 ? 528 : min(tokens, 264); }

template <int V>
__device__ __forceinline__ void load(float (&to)[V], const T* from) {
  if constexpr (V == 8) {
    const uint4 raw = *reinterpret_cast<const uint4*>(from);
    const __nv_bfloat162* pairs = reinterpret_cast<const __nv_bfloat162*>(&raw);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 two = __bfloat1622float2(pairs[i]);
      to[2 * i] = two.x;
      to[2 * i + 1] = two.y;
    }
  } else {
    to[0] = __bfloat162float(*from);
  }
}

template <int V>
__device__ __forceinline__ void store(T* to, const float (&from)[V]) {
  if constexpr (V == 8) {
    __nv_bfloat162 pairs[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) pairs[i] = __floats2bfloat162_rn(from[2 * i], from[2 * i + 1]);
    *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(pairs);
  } else {
    *to = __float2bfloat16(from[0]);
  }
}

template <int V, int kRows>
__global__ void __launch_bounds__(kThreads) grad_rows(const T* x, const T* weight, const T* grad_out, const float* rstd,
                                                      T* grad_x, float* partial, int tokens, int hidden) {
  constexpr int kTurns = kColumns / (kThreads * V);
  __shared__ float of_warp[2][kRows][kWarps];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  float sums[kTurns][V];
#pragma unroll
  for (int i = 0; i < kTurns; ++i)
#pragma unroll
    for (int j = 0; j < V; ++j) sums[i][j] = 0;

  float* const own = partial + (long long)blockIdx.x * hidden;
  bool flushed = false;
  int turns = 0, parity = 0;
  const auto flush = [&]() {
#pragma unroll
    for (int i = 0; i < kTurns; ++i) {
      const int h = (i * kThreads + threadIdx.x) * V;
      if (h >= hidden) break;
#pragma unroll
      for (int j = 0; j < V; ++j) {
        own[h + j] = flushed ? own[h + j] + sums[i][j] : sums[i][j];
        sums[i][j] = 0;
      }
    }
    flushed = true;
    turns = 0;
  };

  for (long long first = (long long)blockIdx.x * kRows; first < tokens; first += 264 * kRows) {
    float scale[kRows], dot[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const long long token = first + r;
      dot[r] = 0;
      scale[r] = 0;
      if (token < tokens) {
        scale[r] = rstd[token];
        const T* row = x + token * hidden;
        const T* grad = grad_out + token * hidden;
#pragma unroll
        for (int i = 0; i < kTurns; ++i) {
          const int h = (i * kThreads + threadIdx.x) * V;
          if (h >= hidden) break;
          float a[V], g[V], w[V];
          load(a, row + h);
          load(g, grad + h);
          load(w, weight + h);
#pragma unroll
          for (int j = 0; j < V; ++j) {
            dot[r] += g[j] * w[j] * a[j];
            sums[i][j] += g[j] * a[j] * scale[r];
          }
        }
      }
#pragma unroll
      for (int d = 16; d > 0; d /= 2) dot[r] += __shfl_xor_sync(0xffffffffu, dot[r], d);
      if (lane == 0) of_warp[parity][r][warp] = dot[r];
    }
    __syncthreads();
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const long long token = first + r;
      if (token >= tokens) break;
      float all = 0;
#pragma unroll
      for (int w = 0; w < kWarps; ++w) all += of_warp[parity][r][w];
      const float slope = scale[r] * scale[r] * (all / float(hidden));
      const T* row = x + token * hidden;
      const T* grad = grad_out + token * hidden;
      T* out = grad_x + token * hidden;
#pragma unroll
      for (int i = 0; i < kTurns; ++i) {
        const int h = (i * kThreads + threadIdx.x) * V;
        if (h >= hidden) break;
        float a[V], g[V], w[V];
        load(a, row + h);
        load(g, grad + h);
        load(w, weight + h);
#pragma unroll
        for (int j = 0; j < V; ++j) a[j] = scale[r] * (g[j] * w[j] - a[j] * slope);
        store(out + h, a);
      }
    }
    parity ^= 1;  // the next turn's sums lie elsewhere, so one barrier a turn is enough
    if (++turns == kFlush) flush();
  }
  flush();
}

// A block adds up 32 columns.
__global__ void __launch_bounds__(512) grad_columns(const float* partial, T* grad_weight, int tokens, int hidden) {
  __shared__ float of_row[16][33];
  const int blocks = blocks_of(tokens);
  const int h = blockIdx.x * 32 + threadIdx.x;
  float sum = 0;
  if (h < hidden)
    for (int b = threadIdx.y; b < blocks; b += 16) sum += partial[(long long)b * hidden + h];
  of_row[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y == 0 && h < hidden) {
    float all = 0;
#pragma unroll
    for (int i = 0; i < 16; ++i) all += of_row[i][threadIdx.x];
    grad_weight[h] = __float2bfloat16(all);
  }
}
