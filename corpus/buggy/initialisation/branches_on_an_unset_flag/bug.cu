extern "C" __global__ void any_large(const float* x, float* y) {
  __shared__ int found;
  float v = x[threadIdx.x];
  if (threadIdx.x == 0 && v > 100.0f) found = static_cast<int>(v);
  __syncthreads();
  if (found > 100) {  // BUG: uninitialised_use
    while (v > 0.25f) v *= 0.5f;
  }
  y[threadIdx.x] = v;
}
