extern "C" __global__ void total(const float* x, float* y) {
  if (blockIdx.x != 0) return;
  float sum = 0.0f;
  for (int b = 0; b < gridDim.x; ++b) {
    float v = x[b * 32 + threadIdx.x];
    for (int o = 16; o > 0; o /= 2) v += __shfl_xor_sync(0xffffffffu, v, o);
    sum += v * (1.0f + b);
  }
  if (threadIdx.x == 0) *y = sum;
}
