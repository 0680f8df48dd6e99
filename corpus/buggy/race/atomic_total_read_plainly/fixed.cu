extern "C" __global__ void normalise(const float* x, float* total, float* y) {
  // Each block sums all of x by itself, in one order.
  int i = blockIdx.x * 64 + threadIdx.x;
  float t = 0.0f;
  for (int k = 0; k < 256; ++k) t += x[k];
  if (i == 0) *total = t;
  y[i] = x[i] / t;
}
