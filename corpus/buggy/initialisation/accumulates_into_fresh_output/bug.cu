extern "C" __global__ void column_sum(const float* x, float* y) {
  float v = x[blockIdx.x * 32 + threadIdx.x];
  atomicAdd(&y[threadIdx.x], v);  // BUG: uninitialised_use
}
