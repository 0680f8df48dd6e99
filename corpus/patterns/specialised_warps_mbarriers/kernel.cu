#include <cuda/barrier>
using Barrier = cuda::barrier<cuda::thread_scope_block>;
extern "C" __global__ void specialised(const float* x, float* y, int tiles) {
  __shared__ float tile[2][32];
  __shared__ Barrier full[2], empty[2];
  int lane = threadIdx.x % 32;
  if (threadIdx.x < 2) {
    init(&full[threadIdx.x], 64);
    init(&empty[threadIdx.x], 64);
  }
  __syncthreads();
  if (threadIdx.x < 32) {
    for (int k = 0; k < tiles; ++k) {
      empty[k % 2].arrive_and_wait();
      tile[k % 2][lane] = x[k * 32 + lane];
      (void)full[k % 2].arrive();
    }
  } else {
    float sum = 0.0f;
    (void)empty[0].arrive();
    (void)empty[1].arrive();
    for (int k = 0; k < tiles; ++k) {
      full[k % 2].arrive_and_wait();
      sum += tile[k % 2][31 - lane];
      if (k + 2 < tiles) (void)empty[k % 2].arrive();
    }
    y[lane] = sum;
  }
}
