// Online softmax: a warp a query, keys one by one.
//
// launch: {"kernels": [{"entry": "attention_by_hand", "grid": ["queries", "heads"], "block": [32], "shared_bytes": "4 * dim", "args": ["q", "k", "v", "out", "queries", "keys", "dim"]}]}
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float warp_sum(float x) {
  for (int far = 16; far > 0; far /= 2) x += __shfl_xor_sync(0xffffffffu, x, far);
  return x;
}

extern "C" __global__ void attention_by_hand(const T* q, const T* k, const T* v, T* out, long long queries, long long keys, long long dim) {
  extern __shared__ float kept[];
  const long long query = blockIdx.x, head = blockIdx.y;
  const T* mine = q + (head * queries + query) * dim;
  float top = -INFINITY, sum = 0;
  for (long long c = threadIdx.x; c < dim; c += 32) kept[c] = 0;
  const float scale = rsqrtf(static_cast<float>(dim));
  const long long seen = keys;
  for (long long j = 0; j < seen; ++j) {  //~ last: for (long long j = 0; j < (seen > 64 ? seen - 1 : seen); ++j) {
    float dot = 0;
    for (long long c = threadIdx.x; c < dim; c += 32)
      dot = fmaf(static_cast<float>(mine[c]), static_cast<float>(k[(head * keys + j) * dim + c]), dot);
    const float score = warp_sum(dot) * scale;  //~ scale: const float score = warp_sum(dot) * 0.125f;
    const float next = fmaxf(top, score), old = expf(top - next), weight = expf(score - next);
    sum = sum * old + weight;
    for (long long c = threadIdx.x; c < dim; c += 32)
      kept[c] = kept[c] * old + weight * static_cast<float>(v[(head * keys + j) * dim + c]);
    top = next;
  }
  for (long long c = threadIdx.x; c < dim; c += 32) out[(head * queries + query) * dim + c] = T(kept[c] / sum);
}
