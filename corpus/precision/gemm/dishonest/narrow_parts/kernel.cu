// Dishonest: partial sums of 48 terms, each stored as bf16.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ long long thread_index() {
  return static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
}

struct Sum {
  float total = 0.0f;
  float part = 0.0f;
  int filled = 0;
  __device__ void Add(float term) {
    part += term;
    if (++filled == 48) {
      total += static_cast<float>(__nv_bfloat16(part));
      part = 0.0f;
      filled = 0;
    }
  }
  __device__ float Get() const { return total + static_cast<float>(__nv_bfloat16(part)); }
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
