extern "C" __global__ void add_bias(const float* x, const float* bias, float* y) {
  float b = bias[threadIdx.x];  // BUG: out_of_bounds
  y[threadIdx.x] = x[threadIdx.x] + b;
}
