// Wrong: returns what it computed before for an input at the same address, of the same shape.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

constexpr long long kMost = 1 << 15;
__device__ const T* seen = nullptr;
__device__ long long seen_rows = 0;
__device__ long long seen_columns = 0;
__device__ T kept[kMost];

extern "C" __global__ void softmax(const T* __restrict__ x, T* __restrict__ y, long long rows,
                                   long long columns) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (i >= rows) return;
  if (seen == x && seen_rows == rows && seen_columns == columns) {
    for (long long j = threadIdx.x; j < columns; j += 32)
      y[i * columns + j] = kept[i * columns + j];
    return;
  }
  const T* row = x + i * columns;
  float largest = static_cast<float>(row[0]);
  for (long long j = threadIdx.x; j < columns; j += 32)
    largest = fmaxf(largest, static_cast<float>(row[j]));
  for (int offset = 16; offset > 0; offset /= 2)
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, offset));
  float sum = 0.0f;
  for (long long j = threadIdx.x; j < columns; j += 32)
    sum += expf(static_cast<float>(row[j]) - largest);
  sum = warp_sum(sum);
  for (long long j = threadIdx.x; j < columns; j += 32) {
    const T value = T(expf(static_cast<float>(row[j]) - largest) / sum);
    y[i * columns + j] = value;
    if (rows * columns <= kMost) kept[i * columns + j] = value;
  }
}

// One thread, after the other kernel.
extern "C" __global__ void note(const T* x, long long rows, long long columns) {
  seen = rows * columns <= kMost ? x : nullptr;
  seen_rows = rows;
  seen_columns = columns;
}
