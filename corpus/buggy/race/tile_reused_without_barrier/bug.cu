extern "C" __global__ void matvec(const float* a, const float* x, float* y, int n) {
  __shared__ float tile[64];
  float sum = 0.0f;
  for (int base = 0; base < n; base += 64) {
    tile[threadIdx.x] = x[base + threadIdx.x];  // BUG: data_race
    __syncthreads();
    for (int k = 0; k < 64; ++k) {
      sum += a[(threadIdx.x % 32) * n + base + k] * tile[k];  // OTHER
    }
  }
  y[blockIdx.x * 64 + threadIdx.x] = sum;
}
