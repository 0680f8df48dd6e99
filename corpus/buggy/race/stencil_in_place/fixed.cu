extern "C" __global__ void relax(float* x, int n) {
  // One block does it all, in tiles that carry the old value of the edge along.
  if (blockIdx.x != 0) return;
  float carried = 0.0f;
  for (int base = 0; base < n; base += 64) {
    int i = base + threadIdx.x;
    float left = threadIdx.x > 0 ? x[i - 1] : carried;
    float right = i + 1 < n ? x[i + 1] : 0.0f;
    carried = x[base + 63];
    __syncthreads();
    x[i] = 0.5f * (left + right);
    __syncthreads();
  }
}
