extern "C" __global__ void lower(const float* x, float* y) {
  __shared__ float s[32];
  if (threadIdx.x >= 16) return;
  s[threadIdx.x] = x[threadIdx.x];
  __syncwarp(0x0000ffffu);
  float v = s[15 - threadIdx.x];
  if (threadIdx.x < 8) {
    __syncwarp(0x0000ffffu);  // BUG: barrier_misuse
    v += s[threadIdx.x];
  }
  y[threadIdx.x] = v;
}
