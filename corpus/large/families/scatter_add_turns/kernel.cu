// Right: 1,500 blocks go over the elements in turns. Offsets within a turn are numbers of 32 bits, as
// differences of products that may come round: both halves of a product, or a distance from where a
// block began.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ unsigned long long product(unsigned a, unsigned b) {
  return static_cast<unsigned long long>(__umulhi(a, b)) << 32 | a * b;
}

extern "C" __global__ void add(const T* __restrict__ src, const long long* __restrict__ index,
                               float* sums, long long tokens, long long hidden) {
  const unsigned width = static_cast<unsigned>(hidden);
  const unsigned count = static_cast<unsigned>(tokens);
  for (unsigned token = blockIdx.x * blockDim.y + threadIdx.y; token < count;
       token += gridDim.x * blockDim.y) {
    const unsigned first = token / 4 * 4;
    const T* group = src + product(first, width);
    const unsigned within = token * width - first * width;
    float* to = sums + index[token] * hidden;
    for (unsigned h = threadIdx.x; h < width; h += 32)
      atomicAdd(to + h, static_cast<float>(group[within + h]));
  }
}

extern "C" __global__ void store(const float* __restrict__ sums, T* __restrict__ out,
                                 long long rows, long long hidden) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < rows * hidden) out[i] = T(sums[i]);
}
