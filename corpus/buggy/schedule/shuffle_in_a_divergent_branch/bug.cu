extern "C" __global__ void tail_sum(const float* x, float* y, int n) {
  float v = 0.0f;
  if (threadIdx.x < n) {
    v = x[threadIdx.x];
    v += __shfl_xor_sync(0xffffffffu, v, 1);  // BUG: barrier_misuse
  }
  y[threadIdx.x] = v;
}
