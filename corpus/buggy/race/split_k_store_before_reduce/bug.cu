extern "C" __global__ void slices(const float* a, const float* b, float* c, int k) {
  int column = blockIdx.x * 32 + threadIdx.x;
  int from = blockIdx.y * k / 4, to = (blockIdx.y + 1) * k / 4;
  float sum = 0.0f;
  for (int i = from; i < to; ++i) sum += a[i] * b[i * 64 + column];
  c[column] += sum;  // BUG: data_race
}
