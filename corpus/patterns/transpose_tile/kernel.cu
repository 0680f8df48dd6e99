extern "C" __global__ void transpose(const float* x, float* y) {
  __shared__ float tile[32][33];
  int bx = blockIdx.x * 32, by = blockIdx.y * 32;
  for (int r = threadIdx.y; r < 32; r += 8) tile[r][threadIdx.x] = x[(by + r) * 64 + bx + threadIdx.x];
  __syncthreads();
  for (int r = threadIdx.y; r < 32; r += 8) y[(bx + r) * 64 + by + threadIdx.x] = tile[threadIdx.x][r];
}
