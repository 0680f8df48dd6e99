// Wrong: the maximum of a row begins at -10.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

extern "C" __global__ void attention(const T* __restrict__ q, const T* __restrict__ k,
                                     const T* __restrict__ v, float scale, float softcap,
                                     int causal, float* scores, T* __restrict__ o, long long heads,
                                     long long queries, long long keys, long long dim) {
  const long long row = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (row >= heads * queries) return;
  const long long head = row / queries;
  const long long visible = causal ? keys - queries + row % queries + 1 : keys;
  float* s = scores + row * keys;
  float largest = -10.0f;
  for (long long j = threadIdx.x; j < visible; j += 32) {
    float dot = 0.0f;
    for (long long c = 0; c < dim; ++c)
      dot +=
          static_cast<float>(q[row * dim + c]) * static_cast<float>(k[(head * keys + j) * dim + c]);
    float score = dot * scale;
    if (softcap > 0.0f) score = softcap * tanhf(score / softcap);
    s[j] = score;
    largest = fmaxf(largest, score);
  }
  for (int offset = 16; offset > 0; offset /= 2)
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, offset));
  float sum = 0.0f;
  for (long long j = threadIdx.x; j < visible; j += 32) {
    s[j] = expf(s[j] - largest);
    sum += s[j];
  }
  sum = warp_sum(sum);
  __syncwarp();  // lanes read each other's scores from here on
  for (long long c = threadIdx.x; c < dim; c += 32) {
    float value = 0.0f;
    for (long long j = 0; j < visible; ++j)
      value += s[j] * static_cast<float>(v[(head * keys + j) * dim + c]);
    o[row * dim + c] = T(value / sum);
  }
}
