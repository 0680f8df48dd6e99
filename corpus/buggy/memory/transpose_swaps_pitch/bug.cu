extern "C" __global__ void transpose(const float* x, float* y, int rows, int cols) {
  int c = blockIdx.x * 8 + threadIdx.x;
  int r = blockIdx.y * 8 + threadIdx.y;
  float v = x[r * cols + c];
  y[c * cols + r] = v;  // BUG: out_of_bounds
}
