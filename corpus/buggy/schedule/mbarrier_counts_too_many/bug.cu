#include <cuda/barrier>
extern "C" __global__ void consumers(const float* x, float* y) {
  __shared__ float tile[32];
  __shared__ cuda::barrier<cuda::thread_scope_block> ready;
  if (threadIdx.x == 0) init(&ready, blockDim.x);
  __syncthreads();
  if (threadIdx.x >= 32) return;
  tile[threadIdx.x] = x[threadIdx.x];
  ready.arrive_and_wait();  // BUG: livelock
  y[threadIdx.x] = tile[31 - threadIdx.x];
}
