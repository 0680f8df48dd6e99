extern "C" __global__ void block_sum(const float* x, float* y) {
  __shared__ float s[64];
  int t = threadIdx.x;
  s[t] = x[blockIdx.x * 64 + t];
  __syncthreads();
  if (t < 32) {
    s[t] += s[t + 32];  // OTHER
    float v = s[t] + s[(t + 16) % 32];  // BUG: data_race
    for (int o = 8; o > 0; o /= 2) v += __shfl_down_sync(0xffffffffu, v, o);
    if (t == 0) y[blockIdx.x] = v;
  }
}
