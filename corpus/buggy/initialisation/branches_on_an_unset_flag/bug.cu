extern "C" __global__ void any_large(const float* x, float* y) {
  __shared__ int found;
  float v = x[threadIdx.x];
  if (threadIdx.x == 0 && v > 100.0f) found = 1;
  __syncthreads();
  if (found == 1) v = 100.0f;  // BUG: uninitialised_use
  y[threadIdx.x] = v;
}
