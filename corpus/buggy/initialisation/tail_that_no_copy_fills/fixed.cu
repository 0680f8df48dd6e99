#include <cuda_pipeline.h>
extern "C" __global__ void k(const float* x, float* y, int n) {
  __shared__ __align__(16) float s[128];
  int t = threadIdx.x, i = t * 4;
  __pipeline_memcpy_async(&s[i], &x[i < n ? i : 0], 16, i < n ? 0 : 16);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  for (int j = t; j < 128; j += 32) y[j] = s[j] * 2.f;
}
