#include <cuda_bf16.h>

using int64 = long long;

__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
  for (int offset = 16; offset > 0; offset >>= 1) value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

__device__ __forceinline__ float warp_max(float value) {
#pragma unroll
  for (int offset = 16; offset > 0; offset >>= 1) value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, offset));
  return value;
}

using T = __nv_bfloat16;

// A block a query, 128 keys at a time: a thread has one score of them, then one or two columns.
extern "C" __global__ void __launch_bounds__(128) attention(const T* q, const T* k, const T* v, float scale, float softcap,
                                                            int causal, T* o, int64 heads, int64 queries, int64 keys,
                                                            int64 dim) {
  __shared__ float query[256];
  __shared__ float weight[128];
  __shared__ float of_warp[4];
  const int t = threadIdx.x;
  const int64 i = blockIdx.x;
  const int64 visible = causal ? keys - queries + i + 1 : keys;
  for (int64 head = blockIdx.y; head < heads; head += gridDim.y) {
    const int64 row = head * queries + i;
    for (int64 c = t; c < dim; c += 128) query[c] = static_cast<float>(q[row * dim + c]);
    __syncthreads();
    float reference = -INFINITY, sum = 0.0f, low = 0.0f, high = 0.0f;
    for (int64 base = 0; base < visible; base += 128) {
      const int64 j = base + t;
      float score = -INFINITY;
      if (j < visible) {
        const T* key = k + (head * keys + j) * dim;
        float dot = 0.0f;
        for (int64 c = 0; c < dim; ++c) dot += query[c] * static_cast<float>(key[c]);
        score = dot * scale;
        if (softcap > 0.0f) score = softcap * tanhf(score / softcap);
      }
      const float top = warp_max(score);
      if ((t & 31) == 0) of_warp[t >> 5] = top;
      __syncthreads();
      const float tile_largest = fmaxf(fmaxf(of_warp[0], of_warp[1]), fmaxf(of_warp[2], of_warp[3]));
      if (tile_largest > reference) {
        const float keep = expf(reference - tile_largest);
        sum *= keep;
        low *= keep;
        high *= keep;
        reference = tile_largest;
      }
      weight[t] = j < visible ? expf(score - reference) : 0.0f;
      __syncthreads();
      const int count = static_cast<int>(visible - base < 128 ? visible - base : 128);
      const T* value = v + (head * keys + base) * dim;
      float tile_sum = 0.0f, tile_low = 0.0f, tile_high = 0.0f;
      for (int s = 0; s < count; ++s) {
        const float p = weight[s];
        tile_sum += p;
        if (t < dim) tile_low += p * static_cast<float>(value[s * dim + t]);
        if (t + 128 < dim) tile_high += p * static_cast<float>(value[s * dim + t + 128]);
      }
      sum += tile_sum;
      low += tile_low;
      high += tile_high;
      __syncthreads();
    }
    if (t < dim) o[row * dim + t] = T(low / sum);
    if (t + 128 < dim) o[row * dim + t + 128] = T(high / sum);
  }
}
