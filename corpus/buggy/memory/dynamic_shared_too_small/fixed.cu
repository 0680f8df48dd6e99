extern __shared__ float arena[];
extern "C" __global__ void two_rows(const float* x, float* y) {
  float* a = arena;
  a[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = a[63 - threadIdx.x] + x[127 - threadIdx.x];
}
