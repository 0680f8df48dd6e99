extern "C" __global__ void fold(const float* x, float* y) {
  __shared__ float s[32];
  int t = threadIdx.x;
  s[t] = x[t];
  __syncwarp(t < 16 ? 0x0000ffffu : 0xffff0000u);
  float v = s[t < 16 ? 15 - t : 47 - t];
  y[t] = v;
}
