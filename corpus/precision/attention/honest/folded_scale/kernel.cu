// Honest: the scale is multiplied into q, in f32, before the dot product.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ long long thread_index() {
  return static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
}

struct Sum {
  float value = 0.0f;
  __device__ void Add(float term) { value += term; }
  __device__ float Get() const { return value; }
};

__device__ T Store(float value, long long) { return T(value); }

__device__ float Operand(T x) { return static_cast<float>(x); }

__device__ float Exp(float x) { return expf(x); }

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
    Sum dot;
    for (long long c = 0; c < dim; ++c)
      dot.Add(Operand(q[row * dim + c]) * scale * Operand(k[(head * keys + j) * dim + c]));
    float score = dot.Get();
    if (softcap > 0.0f) score = softcap * tanhf(score / softcap);
    s[j] = score;
    largest = fmaxf(largest, score);
  }
  Sum sum;
  for (long long j = 0; j < visible; ++j) {
    s[j] = Exp(s[j] - largest);
    sum.Add(s[j]);
  }
  for (long long c = 0; c < dim; ++c) {
    Sum value;
    for (long long j = 0; j < visible; ++j)
      value.Add(s[j] * Operand(v[(head * keys + j) * dim + c]));
    o[row * dim + c] = Store(value.Get() / sum.Get(), row * dim + c);
  }
}
