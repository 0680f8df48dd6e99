// Dishonest: terms are rounded to TF32, as a product with ones on tensor cores does.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ long long thread_index() {
  return static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
}

struct Sum {
  float value = 0.0f;
  __device__ void Add(float term) {
    value += __int_as_float((__float_as_int(term) + 0x1000) & ~0x1fff);
  }
  __device__ float Get() const { return value; }
};

__device__ T Store(float value, long long) { return T(value); }

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
