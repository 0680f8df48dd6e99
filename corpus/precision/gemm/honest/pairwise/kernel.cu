// Honest: a tree: partial sums of equal length are added pairwise.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ long long thread_index() {
  return static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
}

struct Sum {
  float level[32] = {};
  unsigned count = 0;
  __device__ void Add(float term) {
    int i = 0;
    for (unsigned bits = count; bits & 1u; bits >>= 1) term = level[i++] + term;
    level[i] = term;
    ++count;
  }
  __device__ float Get() const {
    float sum = 0.0f;
    for (int i = 0; i < 32; ++i) {
      if (count >> i & 1u) sum += level[i];
    }
    return sum;
  }
};

__device__ T Store(float value, long long) { return T(value); }

__device__ float Operand(T x) { return static_cast<float>(x); }

extern "C" __global__ void gemm(const T* a, const T* b, T* c, long long m, long long n,
                                long long k) {
  const long long element = thread_index();
  if (element >= m * n) return;
  Sum sum;
  for (long long l = 0; l < k; ++l)
    sum.Add(Operand(a[element / n * k + l]) * Operand(b[l * n + element % n]));
  c[element] = Store(sum.Get(), element);
}
