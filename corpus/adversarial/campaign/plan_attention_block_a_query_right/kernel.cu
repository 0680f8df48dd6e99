// Right: a block a query. Where heads and queries make more than 2^31 - 1 blocks the launch fails, in the open.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float WarpSum(float value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  return value;
}

extern "C" __global__ void attention(const T* q, const T* k, const T* v, float scale, float softcap,
                                     int causal, T* o, long long heads, long long queries,
                                     long long keys, long long dim) {
  // A warp a query; each lane holds up to eight columns of the output.
  const long long row = blockIdx.x;
  const long long head = row / queries;
  const long long visible = causal ? keys - queries + row % queries + 1 : keys;
  float value[8] = {};
  float largest = -3.0e38f, total = 0.0f;
  for (long long j = 0; j < visible; ++j) {
    float dot = 0.0f;
    for (long long c = threadIdx.x; c < dim; c += 32)
      dot +=
          static_cast<float>(q[row * dim + c]) * static_cast<float>(k[(head * keys + j) * dim + c]);
    float score = WarpSum(dot) * scale;
    if (softcap > 0.0f) score = softcap * tanhf(score / softcap);
    const float next = fmaxf(largest, score);
    const float shrink = expf(largest - next), weight = expf(score - next);
    total = total * shrink + weight;
    largest = next;
    for (int part = 0; part < 8; ++part) {
      const long long c = threadIdx.x + part * 32;
      if (c < dim)
        value[part] =
            value[part] * shrink + weight * static_cast<float>(v[(head * keys + j) * dim + c]);
    }
  }
  const float inverse = 1.0f / total;
  for (int part = 0; part < 8; ++part) {
    const long long c = threadIdx.x + part * 32;
    if (c < dim) o[row * dim + c] = T(value[part] * inverse);
  }
}
