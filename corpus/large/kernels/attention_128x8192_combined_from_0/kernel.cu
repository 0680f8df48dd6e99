// Wrong: the second kernel takes 0 for the least maximum of the splits.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

constexpr int kHeadKeys = 8192;
constexpr int kSplits = 8;
constexpr int kSplitKeys = kHeadKeys / kSplits;
constexpr int kTile = 32;
constexpr int kDim = 128;
constexpr int kWarps = 4;

__device__ __forceinline__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

__device__ __forceinline__ float warp_max(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, offset));
  return value;
}

extern "C" __global__ void attention_split(const T* __restrict__ q, const T* __restrict__ k,
                                           const T* __restrict__ v, float scale, float softcap,
                                           int causal, float* __restrict__ split_max,
                                           float* __restrict__ split_sum,
                                           float* __restrict__ split_out, int queries, int dim) {
  __shared__ T keys_tile[kTile][kDim + 2];
  __shared__ T values_tile[kTile][kDim + 2];
  __shared__ float query[kWarps][kDim];

  const int lane = threadIdx.x, warp = threadIdx.y;
  const int thread = warp * 32 + lane;
  const int split = blockIdx.x;
  const long long head = blockIdx.z;
  const int first_query = blockIdx.y * kWarps;
  const int row = min(first_query + warp, queries - 1);
  const int last_row = min(first_query + kWarps, queries) - 1;
  // Aligned to the end: the last query sees all keys.
  const int visible = causal ? kHeadKeys - queries + row + 1 : kHeadKeys;
  const int block_visible = causal ? kHeadKeys - queries + last_row + 1 : kHeadKeys;

  const long long query_row = head * queries + row;
  for (int c = lane; c < dim; c += 32)
    query[warp][c] = static_cast<float>(q[query_row * dim + c]);

  float largest = -INFINITY;
  float sum = 0.0f;
  float out[kDim / 32] = {0.0f, 0.0f, 0.0f, 0.0f};

  const int begin = split * kSplitKeys;
  const int end = min(begin + kSplitKeys, block_visible);
  for (int base = begin; base < end; base += kTile) {
    __syncthreads();
    const T* tile_k = k + (head * kHeadKeys + base) * dim;
    const T* tile_v = v + (head * kHeadKeys + base) * dim;
    for (int i = thread; i < kTile * dim; i += kWarps * 32) {
      keys_tile[i / dim][i % dim] = tile_k[i];
      values_tile[i / dim][i % dim] = tile_v[i];
    }
    __syncthreads();

    float score = 0.0f;
    for (int c = 0; c < dim; ++c)
      score += query[warp][c] * static_cast<float>(keys_tile[lane][c]);
    score *= scale;
    if (softcap > 0.0f) score = softcap * tanhf(score / softcap);
    if (base + lane >= visible) score = -INFINITY;

    const float next = fmaxf(largest, warp_max(score));
    if (next == -INFINITY) continue;  // nothing seen yet
    const float factor = expf(largest - next);
    const float p = expf(score - next);
    sum = sum * factor + p;  // of this lane's keys
    largest = next;
#pragma unroll
    for (int i = 0; i < kDim / 32; ++i) out[i] *= factor;
    for (int j = 0; j < kTile; ++j) {
      const float share = __shfl_sync(0xffffffffu, p, j);
#pragma unroll
      for (int i = 0; i < kDim / 32; ++i)
        if (lane + 32 * i < dim) out[i] += share * static_cast<float>(values_tile[j][lane + 32 * i]);
    }
  }

  sum = warp_sum(sum);
  if (first_query + warp < queries) {
    const long long slot = query_row * kSplits + split;
    if (lane == 0) {
      split_max[slot] = largest;
      split_sum[slot] = sum;
    }
#pragma unroll
    for (int i = 0; i < kDim / 32; ++i)
      if (lane + 32 * i < dim) split_out[slot * dim + lane + 32 * i] = out[i];
  }
}

extern "C" __global__ void attention_combine(const float* __restrict__ split_max,
                                             const float* __restrict__ split_sum,
                                             const float* __restrict__ split_out,
                                             T* __restrict__ o, long long heads,
                                             long long queries, int dim) {
  const long long row = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (row >= heads * queries) return;
  const float* row_max = split_max + row * kSplits;
  const float* row_sum = split_sum + row * kSplits;

  float largest = 0.0f;
#pragma unroll
  for (int s = 0; s < kSplits; ++s) largest = fmaxf(largest, row_max[s]);
  float weight[kSplits];
  float sum = 0.0f;
#pragma unroll
  for (int s = 0; s < kSplits; ++s) {
    weight[s] = expf(row_max[s] - largest);  // 0 for a split without keys
    sum += row_sum[s] * weight[s];
  }
  for (int c = threadIdx.x; c < dim; c += 32) {
    float value = 0.0f;
#pragma unroll
    for (int s = 0; s < kSplits; ++s) value += split_out[(row * kSplits + s) * dim + c] * weight[s];
    o[row * dim + c] = static_cast<T>(value / sum);
  }
}
