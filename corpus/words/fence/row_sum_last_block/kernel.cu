// Parts of a row by blocks; the last to arrive at a row's counter adds them up.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

constexpr int kParts = 4;

extern "C" __global__ void clear(unsigned* count, long long rows) {
  const long long row = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row < rows) count[row] = 0;
}

extern "C" __global__ void row_sum(const T* __restrict__ x, T* __restrict__ y, float* part,
                                   unsigned* count, long long rows, long long columns) {
  const long long row = blockIdx.x;
  float sum = 0.0f;
  for (long long j = blockIdx.y * 32 + threadIdx.x; j < columns; j += 32 * kParts)
    sum += static_cast<float>(x[row * columns + j]);
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  if (threadIdx.x != 0) return;
  part[row * kParts + blockIdx.y] = sum;
  const unsigned arrived = atomicAdd(&count[row], 1u);
  if (arrived != kParts - 1) return;
  float total = 0.0f;
  for (int i = 0; i < kParts; ++i) total += part[row * kParts + i];
  y[row] = T(total);
}
