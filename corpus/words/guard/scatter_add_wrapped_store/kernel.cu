#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void add(const T* __restrict__ src, const long long* __restrict__ index,
                               float* sums, long long tokens, long long hidden) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < tokens * hidden) atomicAdd(&sums[index[i / hidden] * hidden + i % hidden], src[i]);
}

extern "C" __global__ void store(const float* __restrict__ sums, T* __restrict__ out,
                                 long long rows, long long hidden) {
  const long long i = (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x) %
                      (rows * hidden);
  out[i] = T(sums[i]);
}
