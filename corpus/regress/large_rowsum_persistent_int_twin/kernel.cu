#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void row_sum(const T* __restrict__ x, T* __restrict__ y, int rows,
                                   int columns) {
  __shared__ float parts[8];
  for (int row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* mine = x + static_cast<long long>(row) * columns;
    float sum = 0.0f;
    for (int j = threadIdx.x; j < columns; j += 256) sum += static_cast<float>(mine[j]);
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
      float all = 0.0f;
      for (int i = 0; i < 8; ++i) all += parts[i];
      y[row] = T(all);
    }
    __syncthreads();
  }
}
