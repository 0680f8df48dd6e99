extern "C" __global__ void delay(const float* x, float* y, int n, int lag) {
  int i = threadIdx.x;
  int from = (i - lag) % n;
  y[i] = x[from];  // BUG: out_of_bounds
}
