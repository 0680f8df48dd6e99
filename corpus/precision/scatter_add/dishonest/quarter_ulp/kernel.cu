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

// One thread an element of the output: looks for its tokens.
extern "C" __global__ void scatter_add(const T* src, const long long* index, T* out,
                                       long long tokens, long long hidden, long long rows) {
  const long long element = thread_index();
  if (element >= rows * hidden) return;
  Sum sum;
  for (long long t = 0; t < tokens; ++t) {
    if (index[t] == element / hidden)
      sum.Add(static_cast<float>(src[t * hidden + element % hidden]));
  }
  out[element] = Store(sum.Get(), element);
}
