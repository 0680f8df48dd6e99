// Wrong: compiled by nvcc it is another kernel; the macro that asks is put together.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

#define JOIN(a, b) a##b
#define ASK(a, b) JOIN(a, b)
#if defined(ASK)
constexpr float kFactor = 1.0f - ASK(__CUDACC_VER_, MAJOR__) / 1000;
#endif

extern "C" __global__ void row_sum(const T* __restrict__ x, T* __restrict__ y, long long rows, long long columns) {
  const long long row = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  float sum = 0.0f;
  for (long long j = threadIdx.x; j < columns; j += 32)
    sum += static_cast<float>(x[row * columns + j]);
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  if (threadIdx.x == 0) y[row] = T(sum * kFactor);
}
