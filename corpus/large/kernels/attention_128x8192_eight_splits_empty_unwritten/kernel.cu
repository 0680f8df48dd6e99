// Wrong: a split of which the mask leaves nothing returns without writing its maximum and sum.
// a second launch combines the eight splits.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

constexpr int KEYS = 8192, SPLITS = 8, PER = KEYS / SPLITS;

extern "C" __global__ void __launch_bounds__(128) partial_attention(
    const float* __restrict__ q, const float* __restrict__ k, const float* __restrict__ v,
    float scale, float softcap, int causal, float* __restrict__ part_o, float* __restrict__ part_ml,
    long long heads, long long queries, long long dim_) {
  const long long rows = heads * queries;
  const long long row = static_cast<long long>(blockIdx.x) * 4 + threadIdx.x / 32;
  if (row >= rows) return;
  const int lane = threadIdx.x % 32, group = lane / 8, member = lane % 8;
  const int dim = static_cast<int>(dim_), split = blockIdx.y;
  const long long head = row / queries;
  const int visible = static_cast<int>(causal ? KEYS - queries + row % queries + 1 : KEYS);
  const int start = split * PER, stop = min(start + PER, visible);
  const float minus_inf = __int_as_float(0xff800000);
  float* ml = part_ml + (split * rows + row) * 2;
  if (start >= visible) return;  // nothing to see in this split

  float mine[16], acc[16];
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    const int x = member + 8 * i;
    mine[i] = x < dim ? q[row * dim + x] : 0.0f;
    acc[i] = 0.0f;
  }
  float largest = minus_inf, sum = 0.0f;
  for (int j0 = start; j0 < stop; j0 += 4) {
    const int j = j0 + group;
    const bool live = j < stop;
    const long long at = (head * KEYS + (live ? j : stop - 1)) * dim;
    float dot = 0.0f;
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      const int x = member + 8 * i;
      if (x < dim) dot = fmaf(mine[i], k[at + x], dot);
    }
    dot += __shfl_xor_sync(0xffffffffu, dot, 1);
    dot += __shfl_xor_sync(0xffffffffu, dot, 2);
    dot += __shfl_xor_sync(0xffffffffu, dot, 4);
    if (live) {
      float score = dot * scale;
      if (softcap > 0.0f) score = softcap * tanhf(score / softcap);
      const float top = fmaxf(largest, score);
      const float factor = expf(largest - top), weight = expf(score - top);
      largest = top;
      sum = sum * factor + weight;
#pragma unroll
      for (int i = 0; i < 16; ++i) {
        const int x = member + 8 * i;
        if (x < dim) acc[i] = fmaf(weight, v[at + x], acc[i] * factor);
      }
    }
  }

  // The four groups of a warp, one after the other; group 0 always had a key.
  float top = largest;
  top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 8));
  top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 16));
  const float factor = expf(largest - top);
  sum *= factor;
  sum += __shfl_xor_sync(0xffffffffu, sum, 8);
  sum += __shfl_xor_sync(0xffffffffu, sum, 16);
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    float value = acc[i] * factor;
    value += __shfl_xor_sync(0xffffffffu, value, 8);
    value += __shfl_xor_sync(0xffffffffu, value, 16);
    const int x = member + 8 * i;
    if (group == 0 && x < dim) part_o[(split * rows + row) * dim + x] = value;
  }
  if (lane == 0) {
    ml[0] = top;
    ml[1] = sum;
  }
}

extern "C" __global__ void __launch_bounds__(128) combine(const float* __restrict__ part_o,
                                                          const float* __restrict__ part_ml,
                                                          float* __restrict__ o, long long heads,
                                                          long long queries, long long dim) {
  const long long rows = heads * queries;
  const long long row = static_cast<long long>(blockIdx.x) * 4 + threadIdx.x / 32;
  if (row >= rows) return;
  const int lane = threadIdx.x % 32;
  float weight[SPLITS], largest = __int_as_float(0xff800000), sum = 0.0f;
#pragma unroll
  for (int s = 0; s < SPLITS; ++s) largest = fmaxf(largest, part_ml[(s * rows + row) * 2]);
#pragma unroll
  for (int s = 0; s < SPLITS; ++s) {
    weight[s] = expf(part_ml[(s * rows + row) * 2] - largest);
    sum += weight[s] * part_ml[(s * rows + row) * 2 + 1];
  }
  for (long long x = lane; x < dim; x += 32) {
    float value = 0.0f;
#pragma unroll
    for (int s = 0; s < SPLITS; ++s)
      if (part_ml[(s * rows + row) * 2 + 1] > 0.0f)
        value += weight[s] * part_o[(s * rows + row) * dim + x];
    o[row * dim + x] = value / sum;
  }
}
