extern "C" __global__ void total(const float* x, float* partial, int* ticket, float* y) {
  float v = x[blockIdx.x * 32 + threadIdx.x];
  for (int o = 16; o > 0; o /= 2) v += __shfl_xor_sync(0xffffffffu, v, o);
  if (threadIdx.x != 0) return;
  partial[blockIdx.x] = v;
  __threadfence();
  if (atomicAdd(ticket, 1) != gridDim.x - 1) return;
  __threadfence();
  float sum = 0.0f;
  for (int b = 0; b < gridDim.x; ++b) sum += partial[b];
  *y = sum;
}
