#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ void copy4(float* to, const float* from) {
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(address), "l"(from) : "memory");
}
__device__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kLeft>
__device__ void wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}

extern "C" __global__ void row_sum(const T* __restrict__ x, T* __restrict__ y, long long rows,
                                   long long columns) {
  __shared__ float tile[128];
  float sum = 0.0f;
  for (long long start = 0; start < columns; start += 128) {
    const long long j = start + threadIdx.x;
    if (j < columns) copy4(&tile[threadIdx.x], x + blockIdx.x * columns + j);
    commit();
    wait<1>();
    __syncthreads();
    if (threadIdx.x == 0)
      for (int n = 0; n < 128 && start + n < columns; ++n) sum += tile[n];
    __syncthreads();
  }
  if (threadIdx.x == 0) y[blockIdx.x] = T(sum);
}
