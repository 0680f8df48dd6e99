#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void cumsum(const T* __restrict__ x, T* __restrict__ y, long long rows,
                                  long long columns) {
  const long long row = blockIdx.x;
  const long long middle = columns / 2;
  const long long begin = threadIdx.x == 0 ? 0 : middle;
  const long long end = threadIdx.x == 0 ? middle + 1 : columns;
  float sum = 0.0f;
  for (long long j = 0; j < begin; ++j) sum += x[row * columns + j];
  for (long long j = begin; j < end; ++j) {
    sum += x[row * columns + j];
    y[row * columns + j] = T(sum);
  }
}
