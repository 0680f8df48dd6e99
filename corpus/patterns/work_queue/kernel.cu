extern "C" __global__ void drain(const float* x, float* y, int* next, int tiles) {
  __shared__ int tile;
  while (true) {
    if (threadIdx.x == 0) tile = atomicAdd(next, 1);
    __syncthreads();
    int mine = tile;
    __syncthreads();
    if (mine >= tiles) return;
    y[mine * 32 + threadIdx.x] = x[mine * 32 + threadIdx.x] * 2.0f;
  }
}
