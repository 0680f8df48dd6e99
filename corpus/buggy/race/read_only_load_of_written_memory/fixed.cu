extern "C" __global__ void smooth(float* x) {
  int t = threadIdx.x;
  float a = x[t];
  float b = x[(t + 1) % 64];
  __syncthreads();
  x[t] = 0.5f * (a + b);
}
