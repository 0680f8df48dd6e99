extern "C" __global__ void tile_sum(const float* x, float* y, int n) {
  __shared__ float tile[64];
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i < n) tile[threadIdx.x] = x[i];
  __syncthreads();
  for (int o = 32; o > 0; o /= 2) {
    if (threadIdx.x < o) tile[threadIdx.x] += tile[threadIdx.x + o];
    __syncthreads();
  }
  if (threadIdx.x == 0) y[blockIdx.x] = tile[0];  // BUG: uninitialised_use
}
