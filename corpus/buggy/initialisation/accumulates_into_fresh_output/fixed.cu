extern "C" __global__ void column_sum(const float* x, float* y) {
  if (blockIdx.x != 0) return;
  float v = 0.0f;
  for (int r = 0; r < gridDim.x; ++r) v += x[r * 32 + threadIdx.x];
  y[threadIdx.x] = v;
}
