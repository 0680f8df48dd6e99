extern "C" __global__ void groups(const float* x, float* y) {
  __shared__ float tile[96];
  int warp = threadIdx.x / 32;
  tile[threadIdx.x] = x[threadIdx.x];
  if (warp == 0) {
    asm volatile("barrier.cta.sync 1, 96;" ::: "memory");
  } else {
    asm volatile("barrier.cta.sync 1, 64;" ::: "memory");  // BUG: barrier_misuse
  }
  y[threadIdx.x] = tile[threadIdx.x];
}
