// BUG: nondeterministic is about the result, not about a line.
extern "C" __global__ void total(const float* x, float* y) {
  float v = x[blockIdx.x * 32 + threadIdx.x];
  for (int o = 16; o > 0; o /= 2) v += __shfl_xor_sync(0xffffffffu, v, o);
  if (threadIdx.x == 0) atomicAdd(y, v * (1.0f + blockIdx.x));
}
