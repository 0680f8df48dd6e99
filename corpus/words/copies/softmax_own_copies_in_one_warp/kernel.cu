#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

__device__ void copy4(float* to, const float* from) {
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(address), "l"(from) : "memory");
}
__device__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kLeft>
__device__ void wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}

extern "C" __global__ void softmax(const T* __restrict__ x, T* __restrict__ y, long long rows,
                                   long long columns) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (i >= rows) return;
  const T* row = x + i * columns;
  __shared__ float tile[4][32];
  float largest = static_cast<float>(row[0]);
  for (long long j = threadIdx.x; j < columns; j += 32)
    largest = fmaxf(largest, static_cast<float>(row[j]));
  for (int offset = 16; offset > 0; offset /= 2)
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, offset));
  float sum = 0.0f;
  for (long long j = threadIdx.x; j < columns; j += 32) {
    copy4(&tile[threadIdx.y][threadIdx.x], row + j);
    commit();
    sum += expf(tile[threadIdx.y][threadIdx.x] - largest);
    wait<0>();
  }
  sum = warp_sum(sum);
  for (long long j = threadIdx.x; j < columns; j += 32)
    y[i * columns + j] = T(expf(row[j] - largest) / sum);
}
