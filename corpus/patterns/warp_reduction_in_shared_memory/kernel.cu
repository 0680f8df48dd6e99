extern "C" __global__ void block_sum(const float* x, float* y) {
  __shared__ float s[128];
  int t = threadIdx.x;
  s[t] = x[blockIdx.x * 128 + t];
  __syncthreads();
  if (t < 64) s[t] += s[t + 64];
  __syncthreads();
  if (t < 32) {
    float v = s[t] + s[t + 32];
    for (int o = 16; o > 0; o /= 2) {
      __syncwarp();
      s[t] = v;
      __syncwarp();
      v += s[(t + o) % 32];
    }
    if (t == 0) y[blockIdx.x] = v;
  }
}
