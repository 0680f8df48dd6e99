#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

// A warp a sequence, one key at a time: its lanes share the columns, and a running maximum keeps the sums.
extern "C" __global__ void decode_paged(const T* __restrict__ q, const T* __restrict__ k,
                                        const T* __restrict__ v, const long long* __restrict__ table,
                                        T* __restrict__ o, long long blocks, long long dim) {
  const int lane = threadIdx.x;
  const long long row = blockIdx.x;
  const float scale = 1.0f / sqrtf(static_cast<float>(dim));
  float top = -INFINITY, sum = 0.0f, kept[8] = {};
  for (long long j = 0; j < 16 * blocks; ++j) {
    const long long at = (table[row * blocks + j / 16] * 16 + j % 16) * dim;
    float dot = 0.0f;
    for (long long c = lane; c < dim; c += 32)
      dot = fmaf(static_cast<float>(q[row * dim + c]), static_cast<float>(k[at + c]), dot);
    for (int offset = 16; offset > 0; offset /= 2) dot += __shfl_xor_sync(0xffffffffu, dot, offset);
    const float score = dot * scale, next = fmaxf(top, score);
    const float old = expf(top - next), weight = expf(score - next);
    sum = sum * old + weight;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const long long c = lane + 32 * i;
      if (c < dim) kept[i] = fmaf(weight, static_cast<float>(v[at + c]), kept[i] * old);
    }
    top = next;
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const long long c = lane + 32 * i;
    if (c < dim) o[row * dim + c] = T(kept[i] / sum);
  }
}
