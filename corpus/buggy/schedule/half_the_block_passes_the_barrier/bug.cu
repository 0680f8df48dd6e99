extern "C" __global__ void k(const float* x, float* y) {
  __shared__ float s[64];
  int t = threadIdx.x;
  s[t] = x[t];
  if (t < 32) __syncthreads();  // BUG: barrier_divergence
  y[t] = s[t] + 1;
}
