extern "C" __global__ void k(const float* x, float* y) {
  __shared__ float s[128];
  int t = threadIdx.x, g = t / 64;
  s[t] = x[t];
  asm volatile("bar.sync %0, 64;" :: "r"(1) : "memory");  // BUG: barrier_misuse
  y[t] = s[g * 64 + 63 - t % 64];
}
