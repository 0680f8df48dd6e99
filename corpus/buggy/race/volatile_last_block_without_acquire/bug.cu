extern "C" __global__ void total(const float* x, volatile float* result, unsigned* count) {
  __shared__ bool last;
  float v = x[blockIdx.x * 32 + threadIdx.x];
  for (int o = 16; o > 0; o /= 2) v += __shfl_down_sync(0xffffffffu, v, o);
  if (threadIdx.x == 0) {
    result[blockIdx.x] = v;  // OTHER
    __threadfence();
    unsigned ticket = atomicInc(count, gridDim.x);
    last = ticket == gridDim.x - 1;
  }
  __syncthreads();
  if (last) {
    float sum = threadIdx.x < gridDim.x ? result[threadIdx.x] : 0.0f;  // BUG: stale_read
    for (int o = 16; o > 0; o /= 2) sum += __shfl_down_sync(0xffffffffu, sum, o);
    if (threadIdx.x == 0) {
      result[0] = sum;
      *count = 0;
    }
  }
}
