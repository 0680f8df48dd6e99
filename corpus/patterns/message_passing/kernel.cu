#include <cuda/atomic>
extern "C" __global__ void relay(float* data, int* flag, float* y) {
  cuda::atomic_ref<int, cuda::thread_scope_device> ready(*flag);
  if (blockIdx.x == 0) {
    data[threadIdx.x] = 2.0f * threadIdx.x;
    __syncthreads();
    if (threadIdx.x == 0) ready.store(1, cuda::memory_order_release);
  } else {
    if (threadIdx.x == 0) {
      while (ready.load(cuda::memory_order_acquire) == 0) {
      }
    }
    __syncthreads();
    y[threadIdx.x] = data[63 - threadIdx.x];
  }
}
