extern "C" __global__ void reverse(const float* x, float* y, int n) {
  float* scratch = static_cast<float*>(malloc(n * sizeof(float)));
  if (scratch == nullptr) return;
  for (int i = 0; i < n; ++i) scratch[i] = x[threadIdx.x * n + i];
  for (int i = 0; i < n; ++i) {
    float v = scratch[n - 1 - i];
    y[threadIdx.x * n + i] = v;
  }
  free(scratch);
}
