#include <cuda/barrier>
#include <cuda/ptx>
extern "C" __global__ void tma(const float* x, float* y) {
  __shared__ alignas(128) float tile[128];
  __shared__ cuda::barrier<cuda::thread_scope_block> ready;
  if (threadIdx.x == 0) init(&ready, 32);
  __syncthreads();
  cuda::barrier<cuda::thread_scope_block>::arrival_token token;
  if (threadIdx.x == 0) {
    cuda::device::memcpy_async_tx(tile, x, cuda::aligned_size_t<16>(sizeof(tile)), ready);  // OTHER
    token = cuda::device::barrier_arrive_tx(ready, 1, sizeof(tile));
  } else {
    token = ready.arrive();
  }
  float v = tile[threadIdx.x * 4];  // BUG: data_race
  ready.wait(static_cast<decltype(token)&&>(token));
  y[threadIdx.x] = v;
}
