extern "C" __global__ void reverse(const float* x, float* y) {
  __shared__ float tile[64];
  tile[threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
  __syncthreads();
  float v = tile[63 - threadIdx.x];
  y[blockIdx.x * 64 + threadIdx.x] = v;
}
