// Right: one pass over the keys with a running maximum, a warp a query, nothing in the workspace.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

// Up to 256 channels: eight a lane.
extern "C" __global__ void attention(const T* __restrict__ q, const T* __restrict__ k,
                                     const T* __restrict__ v, float scale, float softcap,
                                     int causal, T* __restrict__ o, long long heads,
                                     long long queries, long long keys, long long dim) {
  const long long row = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (row >= heads * queries) return;
  const long long head = row / queries;
  const long long visible = causal ? keys - queries + row % queries + 1 : keys;
  float query[8];
  float sums[8];
  for (int i = 0; i < 8; ++i) {
    const long long c = threadIdx.x + 32ll * i;
    query[i] = c < dim ? static_cast<float>(q[row * dim + c]) : 0.0f;
    sums[i] = 0.0f;
  }
  float largest = 0.0f;
  float total = 0.0f;
  for (long long j = 0; j < visible; ++j) {
    const long long at = (head * keys + j) * dim;
    float dot = 0.0f;
    for (int i = 0; i < 8; ++i) {
      const long long c = threadIdx.x + 32ll * i;
      if (c < dim) dot += query[i] * static_cast<float>(k[at + c]);
    }
    float score = warp_sum(dot) * scale;
    if (softcap > 0.0f) score = softcap * tanhf(score / softcap);
    const float before = largest;
    largest = j == 0 ? score : fmaxf(largest, score);
    const float shrink = j == 0 ? 0.0f : expf(before - largest);
    const float p = expf(score - largest);
    total = total * shrink + p;
    for (int i = 0; i < 8; ++i) {
      const long long c = threadIdx.x + 32ll * i;
      if (c < dim) sums[i] = sums[i] * shrink + p * static_cast<float>(v[at + c]);
    }
  }
  for (int i = 0; i < 8; ++i) {
    const long long c = threadIdx.x + 32ll * i;
    if (c < dim) o[row * dim + c] = T(sums[i] / total);
  }
}
