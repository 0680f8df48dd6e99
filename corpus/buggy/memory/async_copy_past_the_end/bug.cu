#include <cuda_pipeline.h>
extern "C" __global__ void stage(const float* x, float* y, int n) {
  __shared__ __align__(16) float tile[128];
  int i = threadIdx.x * 4;
  __pipeline_memcpy_async(&tile[i], &x[i], 16);  // BUG: out_of_bounds
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  for (int c = threadIdx.x; c < n; c += 32) y[c] = tile[c];
}
