// Right: the tokens of each id as a list, gathered in tiles of 4,096, a row of the table a block.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
  for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
  return v;
}

__device__ __forceinline__ float warp_max(float v) {
#pragma unroll
  for (int o = 16; o > 0; o >>= 1) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, o));
  return v;
}

constexpr int kTile = 4096;  // Tokens of one id that a block keeps at a time.

// A warp a token: the two numbers of its row; and the tokens of each id are counted.
extern "C" __global__ void __launch_bounds__(128)
    row_stats(const T* __restrict__ grad_out, const long long* __restrict__ ids,
              const T* __restrict__ table, const T* __restrict__ weight, float eps, float* scale,
              float* slope, int* counts, long long tokens, long long hidden) {
  const long long token = static_cast<long long>(blockIdx.x) * 4 + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (token >= tokens) return;
  const long long id = ids[token];
  const T* g = grad_out + token * hidden;
  const T* x = table + id * hidden;
  float squares = 0.0f, dot = 0.0f;
  for (long long h = lane; h < hidden; h += 32) {
    const float value = static_cast<float>(x[h]);
    squares += value * value;
    dot += static_cast<float>(g[h]) * static_cast<float>(weight[h]) * value;
  }
  squares = warp_sum(squares);
  dot = warp_sum(dot);
  if (lane == 0) {
    const float s = rsqrtf(squares / static_cast<float>(hidden) + eps);
    scale[token] = s;
    slope[token] = s * s * (dot / static_cast<float>(hidden));
    atomicAdd(&counts[id], 1);
  }
}

// One block: where the tokens of each id start in the list.
extern "C" __global__ void __launch_bounds__(1024)
    starts_of(const int* __restrict__ counts, int* starts, long long vocab) {
  __shared__ int sums[32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int carry = 0;
  for (long long first = 0; first < vocab; first += 1024) {
    const long long v = first + threadIdx.x;
    const int mine = v < vocab ? counts[v] : 0;
    int inclusive = mine;
    for (int o = 1; o < 32; o <<= 1) {
      const int left = __shfl_up_sync(0xffffffffu, inclusive, o);
      if (lane >= o) inclusive += left;
    }
    if (lane == 31) sums[warp] = inclusive;
    __syncthreads();
    int before = 0, all = 0;
    for (int w = 0; w < 32; ++w) {
      if (w == warp) before = all;
      all += sums[w];
    }
    if (v < vocab) starts[v] = carry + before + inclusive - mine;
    carry += all;
    __syncthreads();
  }
}

extern "C" __global__ void __launch_bounds__(256)
    fill(const long long* __restrict__ ids, const int* __restrict__ starts, int* cursors, int* list,
         long long tokens) {
  const long long token = static_cast<long long>(blockIdx.x) * 256 + threadIdx.x;
  if (token >= tokens) return;
  const long long id = ids[token];
  list[starts[id] + atomicAdd(&cursors[id], 1)] = static_cast<int>(token);
}

// A block a row of the table, no atomics: its tokens in tiles, four columns a thread.
extern "C" __global__ void __launch_bounds__(256)
    gather(const T* __restrict__ grad_out, const T* __restrict__ table, const T* __restrict__ weight,
           const float* __restrict__ scale, const float* __restrict__ slope,
           const int* __restrict__ counts, const int* __restrict__ starts,
           const int* __restrict__ list, T* __restrict__ grad_table, long long hidden) {
  __shared__ int token_of[kTile];
  __shared__ float slope_of[kTile];
  const long long row = blockIdx.x;
  const int count = counts[row];
  const int* mine = list + starts[row];
  for (long long first = 0; first < hidden; first += 1024) {
    float sums[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (int t0 = 0; t0 < count; t0 += kTile) {
      const int n = count - t0 < kTile ? count - t0 : kTile;
      __syncthreads();
      for (int t = threadIdx.x; t < n; t += 256) {
        token_of[t] = mine[t0 + t];
        slope_of[t] = slope[mine[t0 + t]];
      }
      __syncthreads();
      const float s = scale[token_of[0]];  // Of the table's row, so the same for all its tokens.
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const long long h = first + threadIdx.x + 256 * i;
        if (h >= hidden) continue;
        const float w = static_cast<float>(weight[h]);
        const float x = static_cast<float>(table[row * hidden + h]);
        float sum = 0.0f;
        for (int t = 0; t < n; ++t)
          sum += static_cast<float>(grad_out[token_of[t] * hidden + h]) * w - x * slope_of[t];
        sums[i] += s * sum;
      }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const long long h = first + threadIdx.x + 256 * i;
      if (h < hidden) grad_table[row * hidden + h] = T(sums[i]);
    }
  }
}

// 256 tokens of 128 columns a block.
extern "C" __global__ void __launch_bounds__(128)
    add_weight(const T* __restrict__ grad_out, const long long* __restrict__ ids,
               const T* __restrict__ table, const float* __restrict__ scale, float* weight_sums,
               long long tokens, long long hidden) {
  const long long h = static_cast<long long>(blockIdx.x) * 128 + threadIdx.x;
  if (h >= hidden) return;
  const long long begin = static_cast<long long>(blockIdx.y) * 256;
  const long long end = begin + 256 < tokens ? begin + 256 : tokens;
  float sum = 0.0f;
  for (long long t = begin; t < end; ++t)
    sum += static_cast<float>(grad_out[t * hidden + h]) *
           static_cast<float>(table[ids[t] * hidden + h]) * scale[t];
  atomicAdd(&weight_sums[h], sum);
}

extern "C" __global__ void __launch_bounds__(256)
    store_weight(const float* __restrict__ sums, T* __restrict__ grad_weight, long long hidden) {
  const long long h = static_cast<long long>(blockIdx.x) * 256 + threadIdx.x;
  if (h < hidden) grad_weight[h] = T(sums[h]);
}
