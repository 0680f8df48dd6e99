extern "C" __global__ void relax(float* x, int n) {
  int i = blockIdx.x * 64 + threadIdx.x;
  float left = i > 0 ? x[i - 1] : 0.0f;
  float right = i + 1 < n ? x[i + 1] : 0.0f;
  __syncthreads();
  x[i] = 0.5f * (left + right);  // BUG: data_race
}
