extern "C" __global__ void top_k(const float* x, float* y, int n, int k) {
  float best[8];
  for (int i = 0; i < k; ++i) best[i] = -1e30f;
  for (int i = 0; i < n; ++i) {
    float v = x[threadIdx.x * n + i];
    int at = k;
    while (at > 0 && best[at - 1] < v) {
      best[at] = best[at - 1];  // BUG: out_of_bounds
      --at;
    }
    if (at < k) best[at] = v;
  }
  for (int i = 0; i < k; ++i) y[threadIdx.x * k + i] = best[i];
}
