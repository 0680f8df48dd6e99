#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

// Two launches: maximum and sum of a row by a warp, then 256 columns a block, rows in turns.
__device__ float worst(float a, float b) { return a != a || b != b ? NAN : fmaxf(a, b); }

extern "C" __global__ void row_stats(const T* __restrict__ x, float* __restrict__ kept, long long rows,
                                     long long columns) {
  const long long row = static_cast<long long>(blockIdx.x) * 8 + threadIdx.x / 32;
  if (row >= rows) return;
  const int lane = threadIdx.x % 32;
  float largest = -INFINITY;
  for (long long j = lane; j < columns; j += 32) largest = worst(largest, static_cast<float>(x[row * columns + j]));
  for (int offset = 16; offset > 0; offset /= 2)
    largest = worst(largest, __shfl_xor_sync(0xffffffffu, largest, offset));
  float sum = 0.0f;
  for (long long j = lane; j < columns; j += 32) sum += expf(static_cast<float>(x[row * columns + j]) - largest);
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  if (lane == 0) {
    kept[2 * row] = largest;
    kept[2 * row + 1] = sum;
  }
}

extern "C" __global__ void normalise(const T* __restrict__ x, const float* __restrict__ kept, T* __restrict__ y,
                                     long long rows, long long columns) {
  const long long j = static_cast<long long>(blockIdx.x) * 256 + threadIdx.x;
  if (j >= columns) return;
  for (long long row = blockIdx.y; row < rows; row += 65535)
    y[row * columns + j] = T(expf(static_cast<float>(x[row * columns + j]) - kept[2 * row]) / kept[2 * row + 1]);
}
