// Right: atomics into sums, then one rounding; both in turns of 256 blocks.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void add(const T* __restrict__ src, const long long* __restrict__ index,
                               float* sums, long long tokens, long long hidden) {
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  const long long all = tokens * hidden;
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < all;
       i += step) {
    const long long token = i / hidden;
    const long long row = index[token];
    atomicAdd(&sums[row * hidden + i % hidden], static_cast<float>(src[i]));
  }
}

extern "C" __global__ void store(const float* __restrict__ sums, T* __restrict__ out,
                                 long long rows, long long hidden) {
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  const long long count = rows * hidden;
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step)
    out[i] = T(sums[i]);
}
