extern __shared__ float arena[];
extern "C" __global__ void two_rows(const float* x, float* y) {
  float* a = arena;
  float* b = arena + 64;
  a[threadIdx.x] = x[threadIdx.x];
  b[threadIdx.x] = x[64 + threadIdx.x];  // BUG: out_of_bounds
  __syncthreads();
  y[threadIdx.x] = a[63 - threadIdx.x] + b[63 - threadIdx.x];
}
