// Honest: lanes keep maximum and sum, merged by butterflies.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ constexpr float kLowest = -3.4028235e38f;

extern "C" __global__ void softmax(const T* x, T* y, long long rows, long long columns) {
  const T* row = x + blockIdx.x * columns;
  float largest = kLowest, total = 0.0f;
  for (long long j = threadIdx.x; j < columns; j += 32) {
    const float value = static_cast<float>(row[j]);
    const float next = fmaxf(largest, value);
    total = total * __expf(largest - next) + __expf(value - next);
    largest = next;
  }
  for (int step = 16; step > 0; step /= 2) {
    const float other = __shfl_xor_sync(0xffffffffu, largest, step);
    const float sum = __shfl_xor_sync(0xffffffffu, total, step);
    const float next = fmaxf(largest, other);
    // A lane without elements has nothing to give.
    total = (largest == kLowest ? 0.0f : total * __expf(largest - next)) +
            (other == kLowest ? 0.0f : sum * __expf(other - next));
    largest = next;
  }
  const float inverse = __fdividef(1.0f, total);
  for (long long j = threadIdx.x; j < columns; j += 32)
    y[blockIdx.x * columns + j] = T(__expf(static_cast<float>(row[j]) - largest) * inverse);
}
