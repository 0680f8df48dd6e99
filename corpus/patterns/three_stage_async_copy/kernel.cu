#include <cuda_pipeline.h>
extern "C" __global__ void pipeline(const float* x, float* y, int tiles) {
  __shared__ __align__(16) float tile[3][256];
  int t = threadIdx.x;
  float sum = 0.0f;
  for (int k = 0; k < 2; ++k) {
    __pipeline_memcpy_async(&tile[k][t * 4], &x[k * 256 + t * 4], 16);
    __pipeline_commit();
  }
  for (int k = 0; k < tiles; ++k) {
    __pipeline_wait_prior(1);
    __syncthreads();
    if (k + 2 < tiles) __pipeline_memcpy_async(&tile[(k + 2) % 3][t * 4], &x[(k + 2) * 256 + t * 4], 16);
    __pipeline_commit();
    for (int i = 0; i < 4; ++i) sum += tile[k % 3][(t * 4 + 128 + i) % 256];
  }
  y[t] = sum;
}
