#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void softmax(const T* __restrict__ x, T* __restrict__ y, long long rows,
                                   long long columns) {
  const T* row = x + blockIdx.x * columns;
  __shared__ float tile[128];
  float largest = row[0];
  for (long long j = 0; j < columns; ++j) largest = fmaxf(largest, row[j]);
  float sum = 0.0f;
  for (long long j = 0; j < columns; ++j) sum += expf(row[j] - largest);
  for (long long start = 0; start < columns; start += 128) {
    const long long j = start + threadIdx.x;
    if (j < columns && threadIdx.x != 63) tile[threadIdx.x] = expf(row[j] - largest) / sum;
    __syncthreads();
    if (j < columns) y[blockIdx.x * columns + j] = T(tile[threadIdx.x]);
    __syncthreads();
  }
}
