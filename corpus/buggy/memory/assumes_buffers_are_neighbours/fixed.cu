extern "C" __global__ void add(const float* x, const float* y, float* out) {
  float a = x[threadIdx.x];
  float b = y[threadIdx.x];
  out[threadIdx.x] = a + b;
}
