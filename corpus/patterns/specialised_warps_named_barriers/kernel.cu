// Barriers 1, 2: stage 0, 1 is full. Barriers 3, 4: stage 0, 1 is empty. All 96 threads take part, half of them only arriving.
__device__ __forceinline__ void sync(int id) { asm volatile("barrier.cta.sync %0, 96;" ::"r"(id) : "memory"); }
__device__ __forceinline__ void arrive(int id) { asm volatile("barrier.cta.arrive %0, 96;" ::"r"(id) : "memory"); }
extern "C" __global__ void specialised(const float* x, float* y, int tiles) {
  __shared__ float tile[2][64];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (warp == 0) {
    for (int k = 0; k < tiles; ++k) {
      if (k >= 2) sync(3 + k % 2);
      tile[k % 2][lane] = x[blockIdx.x * tiles * 64 + k * 64 + lane];
      tile[k % 2][lane + 32] = x[blockIdx.x * tiles * 64 + k * 64 + lane + 32];
      arrive(1 + k % 2);
    }
  } else {
    float sum = 0.0f;
    for (int k = 0; k < tiles; ++k) {
      sync(1 + k % 2);
      sum += tile[k % 2][63 - (threadIdx.x - 32)];
      if (k + 2 < tiles) arrive(3 + k % 2);
    }
    y[blockIdx.x * 64 + threadIdx.x - 32] = sum;
  }
}
