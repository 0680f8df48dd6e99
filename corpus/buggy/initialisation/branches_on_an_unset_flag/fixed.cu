extern "C" __global__ void any_large(const float* x, float* y) {
  __shared__ int found;
  float v = x[threadIdx.x];
  if (threadIdx.x == 0) found = v > 100.0f ? 1 : 0;
  __syncthreads();
  if (found == 1) v = 100.0f;
  y[threadIdx.x] = v;
}
