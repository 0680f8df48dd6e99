extern "C" __global__ void softmax(const float* x, float* y, int n) {
  __shared__ float red[2], stat[2];
  const float* row = x + blockIdx.x * n;
  float m = -1e30f, s = 0.0f;
  for (int base = 0; base < n; base += 64) {
    float v = row[base + threadIdx.x], t = v;
    for (int o = 16; o > 0; o /= 2) t = fmaxf(t, __shfl_xor_sync(0xffffffffu, t, o));
    if (threadIdx.x % 32 == 0) red[threadIdx.x / 32] = t;
    __syncthreads();
    float larger = fmaxf(m, fmaxf(red[0], red[1]));
    float e = __expf(v - larger);
    for (int o = 16; o > 0; o /= 2) e += __shfl_xor_sync(0xffffffffu, e, o);
    __syncthreads();
    if (threadIdx.x % 32 == 0) stat[threadIdx.x / 32] = e;
    __syncthreads();
    s = s * __expf(m - larger) + stat[0] + stat[1];
    m = larger;
  }
  for (int i = threadIdx.x; i < n; i += 64) y[blockIdx.x * n + i] = __expf(row[i] - m) / s;
}
