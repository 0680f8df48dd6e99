#include <cuda_pipeline.h>
extern "C" __global__ void product(const float* x, const float* w, float* y, int tiles) {
  __shared__ __align__(16) float a[2][256], b[2][256];
  int t = threadIdx.x;
  const float* from = x + blockIdx.x * tiles * 256;
  auto load = [&](int k) {
    __pipeline_memcpy_async(&a[k % 2][t * 4], &from[k * 256 + t * 4], 16);
    __pipeline_memcpy_async(&b[k % 2][t * 4], &w[k * 256 + t * 4], 16);
    __pipeline_commit();
  };
  float sum = 0.0f;
  load(0);
  for (int k = 0; k < tiles; ++k) {
    if (k + 1 < tiles) {
      load(k + 1);
      __pipeline_wait_prior(1);
    } else {
      __pipeline_wait_prior(0);
    }
    __syncthreads();
    for (int i = 0; i < 4; ++i) sum += a[k % 2][(t + 64 * i + 17) % 256] * b[k % 2][(t + 64 * i + 31) % 256];
    __syncthreads();
  }
  y[blockIdx.x * 64 + t] = sum;
}
