// An online softmax: a block takes 64 queries of a head, a warp 8 queries one after the other. Blocks are numbered through
// all heads; a head is found by a reciprocal, rounded down.
#include <cuda_fp16.h>

using T = ASSAY_T;

constexpr int kRows = 64;
constexpr int kWarps = 8;


__device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

extern "C" __global__ void __launch_bounds__(256)
    attention(const T* __restrict__ q, const T* __restrict__ k, const T* __restrict__ v, float scale,
              float softcap, int causal, T* __restrict__ o, int heads, int queries, int keys,
              int dim) {
  const int tiles = (queries + kRows - 1) / kRows;
  const float per_tile = __frcp_rd(static_cast<float>(tiles));
  const int head = static_cast<int>(static_cast<float>(blockIdx.x) * per_tile);
  const int tile = blockIdx.x - head * tiles;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int i = 0; i < kRows / kWarps; ++i) {
    const int query = tile * kRows + i * kWarps + warp;
    if (query >= queries) return;
    const size_t row = static_cast<size_t>(head) * queries + query;
    float mine[4], sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (int c = 0; c < 4; ++c) mine[c] = lane * 4 + c < dim ? static_cast<float>(q[row * dim + lane * 4 + c]) : 0.0f;
    float top = -INFINITY, total = 0.0f;
    const int visible = causal ? keys - queries + query + 1 : keys;
    for (int j = 0; j < visible; ++j) {
      const size_t at = (static_cast<size_t>(head) * keys + j) * dim + lane * 4;
      float dot = 0.0f;
      for (int c = 0; c < 4 && lane * 4 + c < dim; ++c) dot += mine[c] * static_cast<float>(k[at + c]);
      float score = warp_sum(dot) * scale;
      if (softcap > 0.0f) score = softcap * tanhf(score / softcap);
      const float most = fmaxf(top, score);
      const float shrink = top == -INFINITY ? 0.0f : expf(top - most), weight = expf(score - most);
      total = total * shrink + weight;
      for (int c = 0; c < 4 && lane * 4 + c < dim; ++c) sum[c] = sum[c] * shrink + weight * static_cast<float>(v[at + c]);
      top = most;
    }
    for (int c = 0; c < 4 && lane * 4 + c < dim; ++c) o[row * dim + lane * 4 + c] = T(sum[c] / total);
  }
}
