extern "C" __global__ void fold(const float* x, float* y) {
  __shared__ float s[32];
  int t = threadIdx.x;
  s[t] = x[t];  // OTHER
  __syncwarp(t < 16 ? 0x0000ffffu : 0xffff0000u);
  float v = s[31 - t];  // BUG: data_race
  y[t] = v;
}
