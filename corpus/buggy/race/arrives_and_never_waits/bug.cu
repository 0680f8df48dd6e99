#include <cuda/barrier>
extern "C" __global__ void hand_over(const float* x, float* y) {
  __shared__ float tile[64];
  __shared__ cuda::barrier<cuda::thread_scope_block> ready;
  if (threadIdx.x == 0) init(&ready, 64);
  __syncthreads();
  tile[threadIdx.x] = x[threadIdx.x];  // OTHER
  (void)ready.arrive();
  float v = tile[63 - threadIdx.x];  // BUG: data_race
  y[threadIdx.x] = v;
}
