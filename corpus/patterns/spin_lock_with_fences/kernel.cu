extern "C" __global__ void add(int* lock, float* total, float* log) {
  if (threadIdx.x == 0) {
    while (atomicCAS(lock, 0, 1) != 0) {
    }
    __threadfence();
    *total = *total + 1.0f;
    __threadfence();
    atomicExch(lock, 0);
  }
  __syncwarp();
  if (threadIdx.x == 0) log[blockIdx.x] = 1.0f;
}
