extern "C" __global__ void square(const float* x, float* scratch) {
  float v = x[threadIdx.x];
  scratch[threadIdx.x] = v > 0.0f ? v * v : 0.0f;
}
extern "C" __global__ void total(const float* scratch, float* y) {
  float v = scratch[threadIdx.x] + scratch[threadIdx.x + 32];
  y[threadIdx.x] = v;
}
