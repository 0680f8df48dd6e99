__device__ void grid_barrier(unsigned* count, unsigned target) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(count, 1);
    while (*reinterpret_cast<volatile unsigned*>(count) < target) {
    }
    __threadfence();
  }
  __syncthreads();
}
extern "C" __global__ void rounds(float* a, float* b, unsigned* count, int n) {
  int i = blockIdx.x * 64 + threadIdx.x;
  for (unsigned round = 0; round < 4; ++round) {
    float* from = round % 2 == 0 ? a : b;
    float* to = round % 2 == 0 ? b : a;
    to[i] = 0.5f * (from[(i + 1) % n] + from[(i + n - 1) % n]);
    grid_barrier(count, (round + 1) * gridDim.x);
  }
}
