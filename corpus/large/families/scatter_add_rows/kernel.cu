// Right: a block takes a token and adds its row into sums, which a second kernel rounds.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void add(const T* __restrict__ src, const long long* __restrict__ index,
                               float* sums, long long hidden) {
  const unsigned token = blockIdx.x;
  const unsigned width = static_cast<unsigned>(hidden);
  const T* from = src + static_cast<unsigned long long>(token) * width;
  float* to = sums + index[token] * hidden;
  for (unsigned h = threadIdx.x; h < width; h += blockDim.x)
    atomicAdd(to + h, static_cast<float>(from[h]));
}

extern "C" __global__ void store(const float* __restrict__ sums, T* __restrict__ out,
                                 long long rows, long long hidden) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < rows * hidden) out[i] = T(sums[i]);
}
