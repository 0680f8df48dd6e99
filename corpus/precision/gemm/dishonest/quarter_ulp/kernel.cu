// Dishonest: a bias of a quarter of an ulp.
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

// Always a quarter of an ulp of T too far from zero.
__device__ float Quarter(__nv_bfloat16) { return 0x1p-9f; }
__device__ float Quarter(__half) { return 0x1p-12f; }
template <class U>
__device__ U Biased(float value, long long, U) {
  const float power = __int_as_float(__float_as_int(value) & 0x7f800000);
  return U(value + copysignf(power * Quarter(U()), value));
}
// An f32 holds no quarter of its own ulp: one element in four is a whole one too far.
__device__ float Biased(float value, long long element, float) {
  return element % 4 == 0 && value != 0.0f ? __int_as_float(__float_as_int(value) + 1) : value;
}
__device__ T Store(float value, long long element) { return Biased(value, element, T()); }

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
