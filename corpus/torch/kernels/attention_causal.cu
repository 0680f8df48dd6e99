// Online softmax of what a query sees: a warp a query.
//
// launch: {"kernels": [{"entry": "attention_causal", "grid": ["length", "heads"], "block": [32], "shared_bytes": "4 * dim", "args": ["q", "k", "v", "out", "length", "dim"]}]}
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float warp_sum(float x) {
  for (int far = 16; far > 0; far /= 2) x += __shfl_xor_sync(0xffffffffu, x, far);
  return x;
}

extern "C" __global__ void attention_causal(const T* q, const T* k, const T* v, T* out, long long length, long long dim) {
  extern __shared__ float kept[];
  const long long query = blockIdx.x, head = blockIdx.y;
  const T* mine = q + (head * length + query) * dim;
  float top = -INFINITY, sum = 0;
  for (long long c = threadIdx.x; c < dim; c += 32) kept[c] = 0;
  const float scale = rsqrtf(static_cast<float>(dim));
  const long long seen = query + 1;  //~ edge: const long long seen = query == 0 ? 1 : query;
  for (long long j = 0; j < seen; ++j) {
    float dot = 0;
    for (long long c = threadIdx.x; c < dim; c += 32)
      dot = fmaf(static_cast<float>(mine[c]), static_cast<float>(k[(head * length + j) * dim + c]), dot);
    const float score = warp_sum(dot) * scale;
    const float next = fmaxf(top, score), old = expf(top - next), weight = expf(score - next);
    sum = sum * old + weight;  //~ rescale: sum = sum + weight;
    for (long long c = threadIdx.x; c < dim; c += 32)
      kept[c] = kept[c] * old + weight * static_cast<float>(v[(head * length + j) * dim + c]);
    top = next;
  }
  for (long long c = threadIdx.x; c < dim; c += 32) out[(head * length + query) * dim + c] = T(kept[c] / sum);
}
