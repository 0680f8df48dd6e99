// One block a row, whose first index one thread computes for all, in int.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void softmax(const T* __restrict__ x, T* __restrict__ y, long long rows,
                                   long long columns) {
  __shared__ int base;
  const int lane = threadIdx.x;
  if (lane == 0) base = static_cast<int>(blockIdx.x) * static_cast<int>(columns);
  __syncwarp();
  float largest = -INFINITY;
  for (int j = lane; j < columns; j += 32)
    largest = fmaxf(largest, static_cast<float>(x[base + j]));
  for (int offset = 16; offset > 0; offset /= 2)
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, offset));
  float sum = 0.0f;
  for (int j = lane; j < columns; j += 32) sum += expf(static_cast<float>(x[base + j]) - largest);
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  for (int j = lane; j < columns; j += 32)
    y[base + j] = T(expf(static_cast<float>(x[base + j]) - largest) / sum);
}
