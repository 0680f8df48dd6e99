#include <cuda_pipeline.h>
extern "C" __global__ void pipeline(const float* x, float* y, int tiles) {
  __shared__ __align__(16) float tile[2][128];
  int t = threadIdx.x;
  float sum = 0.0f;
  __pipeline_memcpy_async(&tile[0][t * 4], &x[t * 4], 16);
  __pipeline_commit();
  for (int k = 0; k < tiles; ++k) {
    if (k + 1 < tiles) {
      __pipeline_memcpy_async(&tile[(k + 1) % 2][t * 4], &x[(k + 1) * 128 + t * 4], 16);  // OTHER
      __pipeline_commit();
    }
    __pipeline_wait_prior(1);
    __syncthreads();
    for (int i = 0; i < 4; ++i) sum += tile[k % 2][(t * 4 + 32 + i) % 128];  // BUG: data_race
    __syncthreads();
  }
  y[t] = sum;
}
