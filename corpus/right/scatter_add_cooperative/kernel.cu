// Right: one cooperative launch: clear, add by atomics and store, with grid barriers between.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cooperative_groups.h>

using T = ASSAY_T;

namespace cg = cooperative_groups;

extern "C" __global__ void scatter(const T* __restrict__ src, const long long* __restrict__ index,
                                   float* sums, T* __restrict__ out, long long tokens,
                                   long long hidden, long long rows) {
  const long long first = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = first; i < rows * hidden; i += stride) sums[i] = 0.0f;
  cg::this_grid().sync();
  for (long long i = first; i < tokens * hidden; i += stride)
    atomicAdd(&sums[index[i / hidden] * hidden + i % hidden], static_cast<float>(src[i]));
  cg::this_grid().sync();
  for (long long i = first; i < rows * hidden; i += stride) out[i] = T(sums[i]);
}
