extern "C" __global__ void total(const float* x, float* partial, int* ticket, float* y) {
  __shared__ int last;
  int i = blockIdx.x * 64 + threadIdx.x;
  partial[i] = x[i] * x[i];  // OTHER
  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicAdd(ticket, 1) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (!last) return;
  float sum = 0.0f;
  for (int b = 0; b < gridDim.x; ++b) sum += partial[b * 64 + threadIdx.x];  // BUG: data_race
  y[threadIdx.x] = sum;
}
