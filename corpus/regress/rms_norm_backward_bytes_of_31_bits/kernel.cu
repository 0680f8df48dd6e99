// Gradient of rms_norm. A fixed grid walks over the tokens: each block writes grad_x of its rows and keeps its share of
// grad_weight in shared memory, which it leaves in a slot of its own; a second kernel adds up the slots.
// Rows whose length is a multiple of 8 move as vectors of 16 bytes, others element by element.
#include <cuda_bf16.h>

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kBlocks = 264;

template <int V>
struct alignas(2 * V) Pack {
  __nv_bfloat16 item[V];
};

// Sum over the block, for all of its threads.
__device__ __forceinline__ float block_sum(float value, float* scratch) {
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;
  __syncthreads();
  float total = 0.0f;
  for (int w = 0; w < kWarps; ++w) total += scratch[w];
  __syncthreads();
  return total;
}

template <int V>
__global__ void __launch_bounds__(kThreads)
    backward(const __nv_bfloat16* __restrict__ x, const __nv_bfloat16* __restrict__ weight,
             const __nv_bfloat16* __restrict__ grad_out, const float* __restrict__ rstd,
             __nv_bfloat16* __restrict__ grad_x, float* __restrict__ partial, int tokens, int hidden) {
  extern __shared__ float share[];
  __shared__ float scratch[kWarps];
  const int packs = hidden / V;
  const int row_bytes = hidden * 2;
  const Pack<V>* ws = reinterpret_cast<const Pack<V>*>(weight);
  for (int p = threadIdx.x; p < packs; p += kThreads)
    for (int e = 0; e < V; ++e) share[p * V + e] = 0.0f;

  for (int token = blockIdx.x; token < tokens; token += gridDim.x) {
    const int start = token * row_bytes;
    const Pack<V>* xs = reinterpret_cast<const Pack<V>*>(reinterpret_cast<const char*>(x) + start);
    const Pack<V>* gs = reinterpret_cast<const Pack<V>*>(reinterpret_cast<const char*>(grad_out) + start);
    Pack<V>* out = reinterpret_cast<Pack<V>*>(reinterpret_cast<char*>(grad_x) + start);

    float dot = 0.0f;
    for (int p = threadIdx.x; p < packs; p += kThreads) {
      const Pack<V> xv = xs[p], gv = gs[p], wv = ws[p];
#pragma unroll
      for (int e = 0; e < V; ++e)
        dot += __bfloat162float(gv.item[e]) * __bfloat162float(wv.item[e]) * __bfloat162float(xv.item[e]);
    }
    dot = block_sum(dot, scratch);
    const float scale = rstd[token];
    const float slope = scale * scale * (dot / static_cast<float>(hidden));

    for (int p = threadIdx.x; p < packs; p += kThreads) {
      const Pack<V> xv = xs[p], gv = gs[p], wv = ws[p];
      Pack<V> result;
#pragma unroll
      for (int e = 0; e < V; ++e) {
        const float value = __bfloat162float(xv.item[e]);
        const float gradient = __bfloat162float(gv.item[e]);
        result.item[e] = __float2bfloat16_rn(scale * (gradient * __bfloat162float(wv.item[e]) - value * slope));
        share[p * V + e] += gradient * value * scale;
      }
      out[p] = result;
    }
  }

  // Each thread leaves what it added up itself.
  float* slot = partial + static_cast<long long>(blockIdx.x) * hidden;
  for (int p = threadIdx.x; p < packs; p += kThreads)
    for (int e = 0; e < V; ++e) slot[p * V + e] = share[p * V + e];
}

// 32 columns a block, 8 threads a column.
extern "C" __global__ void add_slots(const float* __restrict__ partial, __nv_bfloat16* __restrict__ grad_weight,
                                     int tokens, int hidden) {
  __shared__ float sums[8][33];
  const int column = blockIdx.x * 32 + threadIdx.x;
  const int slots = min(tokens, kBlocks);
  float sum = 0.0f;
  if (column < hidden)
    for (int s = threadIdx.y; s < slots; s += 8) sum += partial[static_cast<long long>(s) * hidden + column];
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y == 0 && column < hidden) {
    for (int r = 1; r < 8; ++r) sum += sums[r][threadIdx.x];
    grad_weight[column] = __float2bfloat16_rn(sum);
  }
}
