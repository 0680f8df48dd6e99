extern "C" __global__ void phases(const float* x, float* tmp, int* count, float* y, int n) {
  int i = blockIdx.x * 32 + threadIdx.x;
  if (i >= n) return;
  tmp[i] = x[i];
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(count, 1);
    while (atomicAdd(count, 0) < gridDim.x) {  // BUG: livelock
    }
    __threadfence();
  }
  __syncthreads();
  y[i] = tmp[n - 1 - i];
}
