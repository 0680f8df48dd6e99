#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void add(const T* __restrict__ src, const long long* __restrict__ index,
                               float* sums, long long tokens, long long hidden) {
  const long long token = blockIdx.x;
  if (token >= tokens) return;
  const long long to = index[token];
  for (long long h = threadIdx.x; h < hidden; h += blockDim.x)
    atomicAdd(sums + to * hidden + h, static_cast<float>(src[token * hidden + h]));
}

extern "C" __global__ void store(const float* __restrict__ sums, T* __restrict__ out,
                                 long long rows, long long hidden) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < rows * hidden) out[i] = T(sums[i]);
}
