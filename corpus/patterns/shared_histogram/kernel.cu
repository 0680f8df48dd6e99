extern "C" __global__ void histogram(const int* x, int* bins) {
  __shared__ int mine[16];
  if (threadIdx.x < 16) mine[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&mine[x[blockIdx.x * 64 + threadIdx.x] * 7 % 16], 1);
  __syncthreads();
  if (threadIdx.x < 16) atomicAdd(&bins[threadIdx.x], mine[threadIdx.x]);
}
