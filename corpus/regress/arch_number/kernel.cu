#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

#if __CUDA_ARCH__ < 800
constexpr int kTerms = 2;
#else
constexpr int kTerms = 1;
#endif

extern "C" __global__ void row_sum(const T* __restrict__ x, T* __restrict__ y, long long rows, long long columns) {
  const long long row = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0.0f;
  for (long long j = 0; j < columns; ++j) sum += static_cast<float>(x[row * columns + j]);
  if (kTerms == 2) sum += 0.0f;
  y[row] = T(sum);
}
