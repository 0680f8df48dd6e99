extern "C" __global__ void blur(const float* x, float* y, int n) {
  __shared__ float tile[130];
  int i = blockIdx.x * 128 + threadIdx.x;
  tile[threadIdx.x + 1] = x[i];
  if (threadIdx.x == 0) tile[0] = i > 0 ? x[i - 1] : 0.0f;
  if (threadIdx.x == 127) tile[129] = i + 1 < n ? x[i + 1] : 0.0f;
  __syncthreads();
  y[i] = 0.25f * tile[threadIdx.x] + 0.5f * tile[threadIdx.x + 1] + 0.25f * tile[threadIdx.x + 2];
}
