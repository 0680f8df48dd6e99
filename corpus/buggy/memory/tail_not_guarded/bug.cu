extern "C" __global__ void scale(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = x[i] * 2.0f;
  y[i] = v;  // BUG: out_of_bounds
}
