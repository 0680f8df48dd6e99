extern "C" __global__ void histogram(const int* x, int* bins) {
  int b = x[blockIdx.x * 64 + threadIdx.x] % 16;
  atomicAdd(&bins[b], 1);
}
