extern "C" __global__ void l2(const float* x, float* y) {
  const float* row = x + blockIdx.x * 32;
  float v = row[threadIdx.x], s = v * v;
  for (int o = 16; o > 0; o /= 2) s += __shfl_xor_sync(0xffffffffu, s, o);
  y[blockIdx.x * 32 + threadIdx.x] = v * rsqrtf(s + 1e-6f);
}
