#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void order(const long long* __restrict__ index, int* unsorted,
                                 long long tokens) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int lane = threadIdx.x & 31;
  const long long mine = i < tokens ? index[i] : 0;
  long long next = __shfl_down_sync(0xffffffffu, mine, 1);
  if (lane == 31) next = mine;
  if (i + 1 < tokens && next < mine) atomicOr(unsorted, 1);
}

extern "C" __global__ void add(const T* __restrict__ src, const long long* __restrict__ index,
                               const int* __restrict__ unsorted, float* sums, long long tokens,
                               long long hidden) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= tokens * hidden) return;
  const long long token = i / hidden;
  const long long h = i % hidden;
  const long long to = index[token];
  if (*unsorted != 0) {
    atomicAdd(&sums[to * hidden + h], static_cast<float>(src[i]));
    return;
  }
  if (token > 0 && index[token - 1] == to) return;
  float sum = 0.0f;
  for (long long t = token; t < tokens && index[t] == to; ++t)
    sum += static_cast<float>(src[t * hidden + h]);
  sums[to * hidden + h] = sum;
}

extern "C" __global__ void store(const float* __restrict__ sums, T* __restrict__ out,
                                 long long rows, long long hidden) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < rows * hidden) out[i] = T(sums[i]);
}
