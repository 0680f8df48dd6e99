extern "C" __global__ void blur(const float* x, float* y, int n) {
  __shared__ float tile[128];
  int i = blockIdx.x * 128 + threadIdx.x;
  tile[threadIdx.x] = x[i];
  __syncthreads();
  float left = threadIdx.x > 0 ? tile[threadIdx.x - 1] : 0.0f;
  float right = tile[threadIdx.x + 1];  // BUG: out_of_bounds
  y[i] = 0.25f * left + 0.5f * tile[threadIdx.x] + 0.25f * right;
}
