extern "C" __global__ void ragged(const float* x, float* y, int n) {
  __shared__ float tile[64];
  float sum = 0.0f;
  for (int i = threadIdx.x; i < n; i += 64) {
    tile[threadIdx.x] = x[i];
    __syncthreads();  // BUG: barrier_divergence
    sum += tile[threadIdx.x ^ 1];
    __syncthreads();
  }
  tile[threadIdx.x] = sum;
  __syncthreads();
  y[threadIdx.x] = tile[63 - threadIdx.x];
}
