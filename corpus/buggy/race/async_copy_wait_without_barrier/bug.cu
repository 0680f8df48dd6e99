#include <cuda_pipeline.h>
extern "C" __global__ void stage(const float* x, float* y) {
  __shared__ __align__(16) float tile[256];
  __pipeline_memcpy_async(&tile[threadIdx.x * 4], &x[threadIdx.x * 4], 16);  // OTHER
  __pipeline_commit();
  __pipeline_wait_prior(0);
  float v = tile[255 - threadIdx.x];  // BUG: data_race
  y[threadIdx.x] = v;
}
