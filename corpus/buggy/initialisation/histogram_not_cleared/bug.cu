extern "C" __global__ void histogram(const int* x, int* y) {
  __shared__ int bins[16];
  atomicAdd(&bins[x[threadIdx.x] % 16], 1);  // BUG: uninitialised_use
  __syncthreads();
  if (threadIdx.x < 16) y[threadIdx.x] = bins[threadIdx.x];
}
