// Kernels of race_bench that hand data on through shared memory by cuda::barrier. In a file of their
// own: atomics of block scope are remembered in more. Compiled with: nvcc -ptx -arch=sm_90 -std=c++17 pipeline.cu
#include <cooperative_groups.h>

#include <cuda/barrier>

#define KERNEL extern "C" __global__ void

// A producer warp and consumers, two stages, by cuda::barrier.
KERNEL pipeline(int* data, int* in, int rounds) {
  using Barrier = cuda::barrier<cuda::thread_scope_block>;
  __shared__ int stage[2][256];
  __shared__ Barrier full[2], empty[2];
  auto block = cooperative_groups::this_thread_block();
  if (threadIdx.x == 0) {
    for (int s = 0; s < 2; ++s) {
      init(&full[s], blockDim.x);
      init(&empty[s], blockDim.x);
    }
  }
  block.sync();
  if (threadIdx.x < 32) {
    for (int i = 0; i < rounds; ++i) {
      empty[i % 2].arrive_and_wait();
      for (int k = threadIdx.x; k < 256; k += 32) stage[i % 2][k] = in[(i % 16) * 256 + k];
      auto token = full[i % 2].arrive();
    }
  } else {
    int sum = 0;
    auto first = empty[0].arrive(), second = empty[1].arrive();
    for (int i = 0; i < rounds; ++i) {
      full[i % 2].arrive_and_wait();
      for (int k = threadIdx.x - 32; k < 256; k += blockDim.x - 32) sum += stage[i % 2][k];
      if (i + 2 < rounds) auto token = empty[i % 2].arrive();
    }
    data[blockIdx.x * blockDim.x + threadIdx.x] = sum;
  }
}

// Double buffering by cuda::memcpy_async and one barrier a stage.
KERNEL copies(int* data, int* in, int rounds) {
  using Barrier = cuda::barrier<cuda::thread_scope_block>;
  __shared__ int stage[2][256];
  __shared__ Barrier ready[2];
  if (threadIdx.x == 0) {
    init(&ready[0], blockDim.x);
    init(&ready[1], blockDim.x);
  }
  __syncthreads();
  int sum = 0;
  cuda::memcpy_async(&stage[0][threadIdx.x], &in[threadIdx.x], sizeof(int), ready[0]);
  for (int i = 0; i < rounds; ++i) {
    if (i + 1 < rounds)
      cuda::memcpy_async(&stage[(i + 1) % 2][threadIdx.x], &in[(i + 1) % 16 * 256 + threadIdx.x], sizeof(int),
                         ready[(i + 1) % 2]);
    ready[i % 2].arrive_and_wait();
    sum += stage[i % 2][255 - threadIdx.x];
    __syncthreads();
  }
  data[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
