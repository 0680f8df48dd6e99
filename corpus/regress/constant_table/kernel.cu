#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__constant__ int kStep[5] = {1, 2, 4, 8, 16};
__device__ const float kKeep[2] = {0.0f, 1.0f};

extern "C" __global__ void cumsum(const T* __restrict__ x, T* __restrict__ y, long long rows, long long columns) {
  const int lane = threadIdx.x;
  const long long row = (long long)blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  float carry = kKeep[0];
  for (long long base = 0; base < columns; base += 32) {
    const long long j = base + lane;
    float v = j < columns ? static_cast<float>(x[row * columns + j]) * kKeep[1] : kKeep[0];
    for (int i = 0; i < 5; ++i) {
      const float left = __shfl_up_sync(0xffffffffu, v, kStep[i]);
      if (lane >= kStep[i]) v += left;
    }
    v += carry;
    if (j < columns) y[row * columns + j] = T(v);
    carry = __shfl_sync(0xffffffffu, v, 31);
  }
}
