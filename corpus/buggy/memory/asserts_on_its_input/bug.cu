extern "C" __global__ void root(const float* x, float* y) {
  float v = x[threadIdx.x] - 1.0f;
  if (v < 0.0f) __trap();  // BUG: trap
  y[threadIdx.x] = sqrtf(v);
}
