// Accumulates straight into the bf16 output.
#include <cuda_bf16.h>

extern "C" __global__ void clear(__nv_bfloat16* out, long long rows, long long hidden) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < rows * hidden) out[i] = __float2bfloat16(0.0f);
}

extern "C" __global__ void add(const __nv_bfloat16* src, const long long* index, __nv_bfloat16* out,
                               long long tokens, long long hidden) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < tokens * hidden) atomicAdd(&out[index[i / hidden] * hidden + i % hidden], src[i]);
}
