// Rows are padded to 32 elements in memory, except that nobody padded them: the pitch is `cols` + 1.
extern "C" __global__ void row_sum(const float* x, float* y, int cols) {
  const float4* row = reinterpret_cast<const float4*>(x + blockIdx.x * (cols + 1));
  float sum = 0.0f;
  for (int i = threadIdx.x; i < 9; i += 32) {
    float4 v = row[i];  // BUG: out_of_bounds
    int c = i * 4;
    sum += v.x * (c < cols ? 1.0f : 0.0f) + v.y * (c + 1 < cols ? 1.0f : 0.0f) +
           v.z * (c + 2 < cols ? 1.0f : 0.0f) + v.w * (c + 3 < cols ? 1.0f : 0.0f);
  }
  for (int o = 16; o > 0; o /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, o);
  if (threadIdx.x == 0) y[blockIdx.x] = sum;
}
