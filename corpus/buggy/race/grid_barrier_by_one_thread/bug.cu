extern "C" __global__ void two_phases(const float* x, float* tmp, int* count, float* y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  tmp[i] = x[i] * 2.0f;  // OTHER
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(count, 1);
    while (atomicAdd(count, 0) < gridDim.x) {
    }
    __threadfence();
  }
  float v = tmp[255 - i];  // BUG: data_race
  y[i] = v;
}
