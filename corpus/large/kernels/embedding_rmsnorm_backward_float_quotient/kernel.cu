// Backward of an embedding and its RMS norm: a warp a token makes what its row shares, one launch over all
// elements adds them to their rows, one adds up the weight's gradient by tiles.
#include <cuda_bf16.h>

namespace {

constexpr int kThreads = 256;
constexpr int kTokens = 512;  // of a block that adds up the weight's gradient

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads)
    statistics(const __nv_bfloat16* __restrict__ grad_out, const long long* __restrict__ ids,
               const __nv_bfloat16* __restrict__ table, const __nv_bfloat16* __restrict__ weight, float eps,
               float2* __restrict__ shared_by_row, long long tokens, long long hidden) {
  const int lane = threadIdx.x % 32;
  const long long token = static_cast<long long>(blockIdx.x) * (kThreads / 32) + threadIdx.x / 32;
  if (token >= tokens) return;
  const __nv_bfloat16* g = grad_out + token * hidden;
  const __nv_bfloat16* x = table + ids[token] * hidden;
  float squares = 0.0f;
  float dot = 0.0f;
  if (hidden % 2 == 0) {
    for (long long h = 2 * lane; h < hidden; h += 64) {
      const float2 fx = __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(x + h));
      const float2 fg = __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(g + h));
      const float2 fw = __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(weight + h));
      squares += fx.x * fx.x + fx.y * fx.y;
      dot += fg.x * fw.x * fx.x + fg.y * fw.y * fx.y;
    }
  } else {
    for (long long h = lane; h < hidden; h += 32) {
      const float fx = __bfloat162float(x[h]);
      squares += fx * fx;
      dot += __bfloat162float(g[h]) * __bfloat162float(weight[h]) * fx;
    }
  }
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    squares += __shfl_xor_sync(0xffffffffu, squares, distance);
    dot += __shfl_xor_sync(0xffffffffu, dot, distance);
  }
  if (lane == 0) {
    const float scale = rsqrtf(squares / hidden + eps);
    shared_by_row[token] = make_float2(scale, scale * scale * (dot / hidden));
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    add_elements(const __nv_bfloat16* __restrict__ grad_out, const long long* __restrict__ ids,
                 const __nv_bfloat16* __restrict__ table, const __nv_bfloat16* __restrict__ weight,
                 const float2* __restrict__ shared_by_row, float* __restrict__ sums, long long tokens,
                 long long hidden) {
  const long long elements = tokens * hidden;
  const long long stride = static_cast<long long>(gridDim.x) * kThreads;
  const float width = static_cast<float>(hidden);
  for (long long i = static_cast<long long>(blockIdx.x) * kThreads + threadIdx.x; i < elements; i += stride) {
    // A division of 64-bit integers would cost more than all the rest.
    long long token = static_cast<long long>(static_cast<float>(i) / width);
    long long h = i - token * hidden;
    if (h < 0) {
      --token;
      h += hidden;
    } else if (h >= hidden) {
      ++token;
      h -= hidden;
    }
    const long long id = ids[token];
    const float2 shared = shared_by_row[token];
    const float g = __bfloat162float(grad_out[i]);
    const float x = __bfloat162float(table[id * hidden + h]);
    atomicAdd(&sums[id * hidden + h], shared.x * (g * __bfloat162float(weight[h]) - x * shared.y));
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    add_weight(const __nv_bfloat16* __restrict__ grad_out, const long long* __restrict__ ids,
               const __nv_bfloat16* __restrict__ table, const float2* __restrict__ shared_by_row,
               float* __restrict__ weight_sums, long long tokens, long long hidden) {
  __shared__ float parts[kThreads / 32][32];
  const int lane = threadIdx.x % 32;
  const int group = threadIdx.x / 32;
  const long long h = static_cast<long long>(blockIdx.y) * 32 + lane;
  const long long first = static_cast<long long>(blockIdx.x) * kTokens;
  const long long end = min(first + kTokens, tokens);
  float sum = 0.0f;
  if (h < hidden)
    for (long long t = first + group; t < end; t += kThreads / 32)
      sum += __bfloat162float(grad_out[t * hidden + h]) * __bfloat162float(table[ids[t] * hidden + h]) *
             shared_by_row[t].x;
  parts[group][lane] = sum;
  __syncthreads();
  if (group == 0 && h < hidden) {
#pragma unroll
    for (int g = 1; g < kThreads / 32; ++g) sum += parts[g][lane];
    atomicAdd(&weight_sums[h], sum);
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    store(const float* __restrict__ sums, const float* __restrict__ weight_sums,
          __nv_bfloat16* __restrict__ grad_table, __nv_bfloat16* __restrict__ grad_weight, long long vocab,
          long long hidden) {
  const long long first = static_cast<long long>(blockIdx.x) * kThreads + threadIdx.x;
  const long long stride = static_cast<long long>(gridDim.x) * kThreads;
  for (long long i = first; i < vocab * hidden; i += stride) grad_table[i] = __float2bfloat16(sums[i]);
  for (long long h = first; h < hidden; h += stride) grad_weight[h] = __float2bfloat16(weight_sums[h]);
}
