// A block a query: two warps take every second key with sums of their own, which are merged at the end.
//
// launch: {"kernels": [{"entry": "attention_softcap", "grid": ["queries", "heads"], "block": [32, 2], "shared_bytes": "8 * dim", "args": ["q", "k", "v", "out", "queries", "keys", "dim"]}]}
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void attention_softcap(const T* q, const T* k, const T* v, T* out, long long queries, long long keys, long long dim) {
  extern __shared__ float kept[];  // [warp][dim]
  __shared__ float tops[2], sums[2];
  const int lane = threadIdx.x, warp = threadIdx.y;
  const long long row = blockIdx.y * queries + blockIdx.x;
  float* mine = kept + warp * dim;
  for (long long c = lane; c < dim; c += 32) mine[c] = 0;
  const float root = sqrtf(static_cast<float>(dim));
  float top = -INFINITY, sum = 0;
  for (long long j = warp; j < keys; j += 2) {
    const long long key = (blockIdx.y * keys + j) * dim;
    float dot = 0;
    for (long long c = lane; c < dim; c += 32) dot = fmaf(static_cast<float>(q[row * dim + c]), static_cast<float>(k[key + c]), dot);
    for (int far = 16; far > 0; far /= 2) dot += __shfl_xor_sync(0xffffffffu, dot, far);
    const float score = 50.0f * tanhf(dot / root / 50.0f);  //~ uncapped: const float score = dot / root;
    const float next = fmaxf(top, score), old = expf(top - next), weight = expf(score - next);
    sum = sum * old + weight;
    for (long long c = lane; c < dim; c += 32) mine[c] = mine[c] * old + weight * static_cast<float>(v[key + c]);
    top = next;
  }
  if (lane == 0) tops[warp] = top, sums[warp] = sum;
  __syncthreads();
  const float all = fmaxf(tops[0], tops[1]);
  const float left = expf(tops[0] - all), right = expf(tops[1] - all);  //~ merge: const float left = 1.0f, right = 1.0f;
  const float total = sums[0] * left + sums[1] * right;
  for (long long c = threadIdx.y * 32 + lane; c < dim; c += 64)
    out[row * dim + c] = T((kept[c] * left + kept[dim + c] * right) / total);
}
