extern "C" __global__ void tile_sum(const float* x, float* y, int n) {
  __shared__ float tile[64];
  int i = blockIdx.x * 64 + threadIdx.x;
  tile[threadIdx.x] = i < n ? x[i] : 0.0f;
  __syncthreads();
  for (int o = 32; o > 0; o /= 2) {
    if (threadIdx.x < o) tile[threadIdx.x] += tile[threadIdx.x + o];
    __syncthreads();
  }
  if (threadIdx.x == 0) y[blockIdx.x] = tile[0];
}
