// Dishonest: bf16 atomics.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ long long thread_index() {
  return static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
}

extern "C" __global__ void add(const T* src, const long long* index, __nv_bfloat16* sums,
                               long long tokens, long long hidden) {
  const long long i = thread_index();
  if (i < tokens * hidden)
    atomicAdd(&sums[index[i / hidden] * hidden + i % hidden],
              __nv_bfloat16(static_cast<float>(src[i])));
}

extern "C" __global__ void store(const __nv_bfloat16* sums, T* out, long long rows,
                                 long long hidden) {
  const long long i = thread_index();
  if (i < rows * hidden) out[i] = T(static_cast<float>(sums[i]));
}
