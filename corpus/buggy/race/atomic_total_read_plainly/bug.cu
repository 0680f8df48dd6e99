extern "C" __global__ void normalise(const float* x, float* total, float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  atomicAdd(total, x[i]);  // OTHER
  __syncthreads();
  float t = *total;  // BUG: data_race
  y[i] = x[i] / t;
}
