#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>

using T = ASSAY_T;

__device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

extern "C" __global__ void row_sum(const T* __restrict__ x, T* __restrict__ y, int* marks,
                                   long long rows, long long columns) {
  __shared__ int copied[4];
  const long long row = blockIdx.x;
  float sum = 0.0f;
  for (long long j = threadIdx.x; j < columns; j += 32)
    sum += static_cast<float>(x[row * columns + j]);
  sum = warp_sum(sum);
  if (threadIdx.x != 0) return;
  int* mine = marks + 4 * row;
  for (int i = 0; i < 4; ++i) mine[i] = 0;
  mine[blockIdx.x % 4] = 1;
  __pipeline_memcpy_async(copied, mine, 16);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  y[row] = T(copied[row % 4] == 1 ? sum : sum + 1.0f);
}
