extern "C" __global__ void any_large(const float* x, float* y) {
  __shared__ int found;
  float v = x[threadIdx.x];
  if (threadIdx.x == 0) found = v > 100.0f ? static_cast<int>(v) : 0;
  __syncthreads();
  if (found > 100) {
    while (v > 0.25f) v *= 0.5f;
  }
  y[threadIdx.x] = v;
}
