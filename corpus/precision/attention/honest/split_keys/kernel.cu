// Honest: keys in blocks of seven, each with a maximum of its own, merged by their log-sum-exp.
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
  }
  for (long long c = 0; c < dim; ++c) {
    float total = 0.0f, value = 0.0f;
    largest = -3.0e38f;
    for (long long start = 0; start < visible; start += 7) {
      const long long end = start + 7 < visible ? start + 7 : visible;
      float most = -3.0e38f, sum = 0.0f, part = 0.0f;
      for (long long j = start; j < end; ++j) most = fmaxf(most, s[j]);
      for (long long j = start; j < end; ++j) {
        const float weight = expf(s[j] - most);
        sum += weight;
        part += weight * static_cast<float>(v[(head * keys + j) * dim + c]);
      }
      const float log_sum = most + logf(sum);
      const float next = fmaxf(largest, log_sum);
      const float shrink = expf(largest - next), grow = expf(log_sum - next);
      value = value * shrink + part / sum * grow;
      total = total * shrink + grow;
      largest = next;
    }
    o[row * dim + c] = T(value / total);
  }
}
