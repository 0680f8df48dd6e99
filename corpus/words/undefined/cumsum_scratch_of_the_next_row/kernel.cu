#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void cumsum(const T* __restrict__ x, float* scratch, T* __restrict__ y,
                                  long long rows, long long columns) {
  const long long row = blockIdx.x;
  float* sums = scratch + row * (columns + 1);
  if (threadIdx.x == 0) {
    float sum = 0.0f;
    for (long long j = 0; j < columns; ++j) {
      sums[j] = sum;
      sum += x[row * columns + j];
    }
  }
  __syncwarp();
  for (long long j = threadIdx.x; j < columns; j += 32) y[row * columns + j] = T(sums[j + 1]);
}
