extern "C" __global__ void guarded(const float* x, float* y, int n) {
  __shared__ float tile[64];
  int t = threadIdx.x;
  if (t < n) tile[t] = x[t];
  asm volatile("barrier.cta.sync 1, 64;" ::: "memory");
  if (t < n) y[t] = tile[n - 1 - t];
}
