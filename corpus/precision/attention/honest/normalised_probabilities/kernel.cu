// Honest: probabilities are normalised and rounded to T, as between two kernels, before they multiply v.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ long long thread_index() {
  return static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
}

extern "C" __global__ void attention(const T* q, const T* k, const T* v, float scale, float softcap,
                                     int causal, float* scores, T* o, long long heads,
                                     long long queries, long long keys, long long dim) {
  const long long row = thread_index();
  if (row >= heads * queries) return;
  const long long head = row / queries;
  const long long visible = causal ? keys - queries + row % queries + 1 : keys;
  float* s = scores + row * keys;
  float largest = -3.0e38f;
  for (long long j = 0; j < visible; ++j) {
    float score = 0.0f;
    for (long long c = 0; c < dim; ++c)
      score +=
          static_cast<float>(q[row * dim + c]) * static_cast<float>(k[(head * keys + j) * dim + c]);
    score *= scale;
    if (softcap > 0.0f) score = softcap * tanhf(score / softcap);
    s[j] = score;
    largest = fmaxf(largest, score);
  }
  float sum = 0.0f;
  for (long long j = 0; j < visible; ++j) {
    s[j] = expf(s[j] - largest);
    sum += s[j];
  }
  for (long long c = 0; c < dim; ++c) {
    float value = 0.0f;
    for (long long j = 0; j < visible; ++j)
      value +=
          static_cast<float>(T(s[j] / sum)) * static_cast<float>(v[(head * keys + j) * dim + c]);
    o[row * dim + c] = T(value);
  }
}
