// cuda::barrier, cuda::pipeline and memcpy_async.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>

#include <cuda/barrier>
#include <cuda/pipeline>
__global__ void b(float* x, float* y) {
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  __shared__ float s[256];
  if (threadIdx.x == 0) init(&bar, blockDim.x);
  __syncthreads();
  cuda::memcpy_async(s + threadIdx.x, x + threadIdx.x, cuda::aligned_size_t<4>(4), bar);
  bar.arrive_and_wait();
  y[threadIdx.x] = s[255 - threadIdx.x];
  auto t = bar.arrive();
  bar.wait(std::move(t));
}
__global__ void p(float* x, float* y, int n) {
  extern __shared__ float s[];
  auto blk = cooperative_groups::this_thread_block();
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> st;
  auto pipe = cuda::make_pipeline(blk, &st);
  for (int i = 0; i < n; i++) {
    pipe.producer_acquire();
    cuda::memcpy_async(blk, s, x + i * 256, cuda::aligned_size_t<16>(1024), pipe);
    pipe.producer_commit();
    pipe.consumer_wait();
    y[i] = s[threadIdx.x];
    pipe.consumer_release();
  }
}
__global__ void tp(float4* x, float4* y) {
  __shared__ float4 s[128];
  auto pipe = cuda::make_pipeline();
  pipe.producer_acquire();
  cuda::memcpy_async(s + threadIdx.x, x + threadIdx.x, sizeof(float4), pipe);
  pipe.producer_commit();
  cuda::pipeline_consumer_wait_prior<0>(pipe);
  y[threadIdx.x] = s[threadIdx.x];
}
