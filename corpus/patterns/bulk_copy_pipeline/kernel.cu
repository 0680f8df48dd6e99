#include <cuda/barrier>
#include <cuda/ptx>
using Barrier = cuda::barrier<cuda::thread_scope_block>;
extern "C" __global__ void tma(const float* x, float* y, int tiles) {
  __shared__ alignas(128) float tile[2][256];
  __shared__ Barrier ready[2];
  if (threadIdx.x < 2) init(&ready[threadIdx.x], 64);
  cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
  __syncthreads();
  float sum = 0.0f;
  for (int k = 0; k < tiles; ++k) {
    Barrier::arrival_token token;
    if (threadIdx.x == 0) {
      cuda::device::memcpy_async_tx(tile[k % 2], x + k * 256, cuda::aligned_size_t<16>(1024), ready[k % 2]);
      token = cuda::device::barrier_arrive_tx(ready[k % 2], 1, 1024);
    } else {
      token = ready[k % 2].arrive();
    }
    ready[k % 2].wait(static_cast<Barrier::arrival_token&&>(token));
    for (int i = 0; i < 4; ++i) sum += tile[k % 2][(threadIdx.x * 4 + 64 + i) % 256];
    __syncthreads();
  }
  y[threadIdx.x] = sum;
}
