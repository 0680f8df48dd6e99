extern "C" __global__ void block_max(const float* x, float* y) {
  __shared__ float maxima[16];
  __shared__ float sums[16];
  float v = x[threadIdx.x], s = v;
  for (int o = 16; o > 0; o /= 2) {
    v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, o));
    s += __shfl_xor_sync(0xffffffffu, s, o);
  }
  if (threadIdx.x % 32 == 0) {
    sums[threadIdx.x / 32] = s;
    maxima[threadIdx.x / 32] = v;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w < blockDim.x / 32; ++w) v = fmaxf(v, maxima[w]), s += sums[w];
    y[0] = v;
    y[1] = s;
  }
}
