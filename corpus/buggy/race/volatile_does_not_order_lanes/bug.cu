extern "C" __global__ void exchange(const float* x, float* y) {
  __shared__ float s[32];
  float v = x[threadIdx.x];
  s[threadIdx.x] = v;  // OTHER
  float sum = v + __shfl_xor_sync(0xffffffffu, v, 1);
  sum += s[threadIdx.x ^ 2];  // BUG: data_race
  y[threadIdx.x] = sum;
}
