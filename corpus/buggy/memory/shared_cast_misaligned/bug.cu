extern "C" __global__ void dot(const float* x, float* y) {
  __shared__ __align__(16) float tile[8][33];
  for (int i = threadIdx.x; i < 256; i += 32) tile[i / 32][i % 32] = x[i];
  __syncthreads();
  int r = threadIdx.x / 4, c = threadIdx.x % 4 * 8;
  float4 v = *reinterpret_cast<const float4*>(&tile[r][c]);  // BUG: misaligned
  y[threadIdx.x] = v.x + v.y + v.z + v.w;
}
