extern "C" __global__ void guarded(const float* x, float* y, int n) {
  __shared__ float tile[96];
  int t = threadIdx.x;
  if (t >= n) return;
  for (int round = 0; round < 3; ++round) {
    tile[t] = x[blockIdx.x * 96 + t] + round;
    __syncthreads();
    y[blockIdx.x * 96 + t] = tile[n - 1 - t];
    __syncthreads();
  }
}
