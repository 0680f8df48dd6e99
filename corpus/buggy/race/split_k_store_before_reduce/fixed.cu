extern "C" __global__ void slices(const float* a, const float* b, float* c, int k) {
  int column = blockIdx.x * 32 + threadIdx.x;
  if (blockIdx.y != 0) return;
  float sum = 0.0f;
  for (int i = 0; i < k; ++i) sum += a[i] * b[i * 64 + column];
  c[column] += sum;
}
