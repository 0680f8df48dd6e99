// Honest: exp(x - max - log(sum)), no division.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ long long thread_index() {
  return static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
}

extern "C" __global__ void softmax(const T* x, T* y, long long rows, long long columns) {
  const long long i = thread_index();
  if (i >= rows) return;
  const T* row = x + i * columns;
  float largest = static_cast<float>(row[0]);
  for (long long j = 1; j < columns; ++j) largest = fmaxf(largest, static_cast<float>(row[j]));
  float sum = 0.0f;
  for (long long j = 0; j < columns; ++j) sum += expf(static_cast<float>(row[j]) - largest);
  const float log_sum = logf(sum);
  for (long long j = 0; j < columns; ++j)
    y[i * columns + j] = T(expf(static_cast<float>(row[j]) - largest - log_sum));
}
