extern "C" __global__ void histogram(const int* x, int* y) {
  __shared__ int bins[16];
  if (threadIdx.x < 16) bins[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&bins[x[threadIdx.x] % 16], 1);
  __syncthreads();
  if (threadIdx.x < 16) y[threadIdx.x] = bins[threadIdx.x];
}
