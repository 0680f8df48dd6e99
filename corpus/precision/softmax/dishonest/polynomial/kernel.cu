// Dishonest: exp by a cubic, good to 1e-4.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ long long thread_index() {
  return static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
}

// 2^x, by a cubic between whole numbers.
__device__ float Exp(float x) {
  const float t = x * 1.44269504f;
  if (!(t > -126.0f)) return 0.0f;
  const float whole = floorf(t), r = t - whole;
  return ldexpf(1.0f + r * (0.695556856f + r * (0.226173572f + r * 0.0781455737f)), int(whole));
}

extern "C" __global__ void softmax(const T* x, T* y, long long rows, long long columns) {
  const long long i = thread_index();
  if (i >= rows) return;
  const T* row = x + i * columns;
  float largest = static_cast<float>(row[0]);
  for (long long j = 1; j < columns; ++j) largest = fmaxf(largest, static_cast<float>(row[j]));
  float sum = 0.0f;
  for (long long j = 0; j < columns; ++j) sum += Exp(static_cast<float>(row[j]) - largest);
  for (long long j = 0; j < columns; ++j)
    y[i * columns + j] = T(Exp(static_cast<float>(row[j]) - largest) / sum);
}
