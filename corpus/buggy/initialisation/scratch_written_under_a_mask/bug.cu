extern "C" __global__ void square(const float* x, float* scratch) {
  float v = x[threadIdx.x];
  if (v > 0.0f) scratch[threadIdx.x] = v * v;
}
extern "C" __global__ void total(const float* scratch, float* y) {
  float v = scratch[threadIdx.x] + scratch[threadIdx.x + 32];
  y[threadIdx.x] = v;  // BUG: uninitialised_use
}
