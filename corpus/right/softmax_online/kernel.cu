// Right: one pass for maximum and sum together, a block a row.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

struct Running {
  float largest;
  float sum;
};

__device__ Running combine(Running a, Running b) {
  const float largest = fmaxf(a.largest, b.largest);
  // Equal ones apart: -inf less -inf would be NaN.
  const float from_a = a.largest == largest ? a.sum : a.sum * expf(a.largest - largest);
  const float from_b = b.largest == largest ? b.sum : b.sum * expf(b.largest - largest);
  return {largest, from_a + from_b};
}

extern "C" __global__ void softmax(const T* __restrict__ x, T* __restrict__ y, long long rows,
                                   long long columns) {
  __shared__ float largests[128];
  __shared__ float sums[128];
  const long long row = blockIdx.x;
  Running running{__int_as_float(0xff800000), 0.0f};
  for (long long j = threadIdx.x; j < columns; j += 128)
    running = combine(running, {static_cast<float>(x[row * columns + j]), 1.0f});
  largests[threadIdx.x] = running.largest;
  sums[threadIdx.x] = running.sum;
  __syncthreads();
  for (int half = 64; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      const Running both = combine({largests[threadIdx.x], sums[threadIdx.x]},
                                   {largests[threadIdx.x + half], sums[threadIdx.x + half]});
      largests[threadIdx.x] = both.largest;
      sums[threadIdx.x] = both.sum;
    }
    __syncthreads();
  }
  // NaN where the largest is infinite, as the op has it; else sums[0].
  const float total = sums[0] + (largests[0] - largests[0]);
  for (long long j = threadIdx.x; j < columns; j += 128)
    y[row * columns + j] = T(expf(static_cast<float>(x[row * columns + j]) - largests[0]) / total);
}
