#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float warp_scan(float value, unsigned lane) {
  for (unsigned offset = 1; offset < 32; offset *= 2) {
    const float left = __shfl_up_sync(0xffffffffu, value, offset);
    if (lane >= offset) value += left;
  }
  return value;
}

extern "C" __global__ void cumsum(const T* __restrict__ x, T* y, long long rows,
                                  long long columns) {
  const long long row = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  const T* in = x + row * columns;
  T* out = y + row * columns;
  float carry = 0.0f;
  long long start = 0;
  for (; start < columns && start < 8192; start += 32) {
    const long long j = start + threadIdx.x;
    const float value = carry + warp_scan(j < columns ? static_cast<float>(in[j]) : 0.0f, threadIdx.x);
    if (j < columns) out[j] = T(value);
    carry = __shfl_sync(0xffffffffu, value, 31);
  }
  __syncwarp();
  for (; start < columns; start += 32) {
    const long long j = start + threadIdx.x;
    const float before = static_cast<float>(out[start - 1]);
    const float value = before + warp_scan(j < columns ? static_cast<float>(in[j]) : 0.0f, threadIdx.x);
    if (j < columns) out[j] = T(value);
    __syncwarp();
  }
}
