// Honest: two elements a load where rows are aligned.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

struct alignas(2 * sizeof(T)) Pair {
  T first, second;
};

extern "C" __global__ void row_sum(const T* x, T* y, long long rows, long long columns) {
  const long long row = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const T* start = x + row * columns;
  float even = 0.0f, odd = 0.0f;
  if (columns % 2 == 0) {
    const Pair* pairs = reinterpret_cast<const Pair*>(start);
    for (long long j = 0; j < columns / 2; ++j) {
      const Pair pair = pairs[j];
      even += static_cast<float>(pair.first);
      odd += static_cast<float>(pair.second);
    }
  } else {
    for (long long j = 0; j < columns; ++j) even += static_cast<float>(start[j]);
  }
  y[row] = T(even + odd);
}
