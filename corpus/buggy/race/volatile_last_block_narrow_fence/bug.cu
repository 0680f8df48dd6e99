extern "C" __global__ void total(const float* x, volatile float* part, unsigned* count, float* y) {
  float v = x[blockIdx.x * 32 + threadIdx.x];
  for (int o = 16; o > 0; o /= 2) v += __shfl_down_sync(0xffffffffu, v, o);
  if (threadIdx.x != 0) return;
  part[blockIdx.x] = v;  // OTHER
  __threadfence_block();
  if (atomicAdd(count, 1u) != gridDim.x - 1) return;
  __threadfence();
  float sum = 0;
  for (unsigned b = 0; b < gridDim.x; ++b) sum += part[b];  // BUG: stale_read
  *y = sum;
}
