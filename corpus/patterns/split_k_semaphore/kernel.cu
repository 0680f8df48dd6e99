extern "C" __global__ void product(const float* a, const float* b, float* c, int* turn) {
  float sum = 0.0f;
  for (int i = 0; i < 16; ++i) sum += a[blockIdx.x * 16 + i] * b[(blockIdx.x * 16 + i) * 32 + threadIdx.x];
  if (threadIdx.x == 0) {
    while (*reinterpret_cast<volatile int*>(turn) != blockIdx.x) {
    }
    __threadfence();
  }
  __syncthreads();
  c[threadIdx.x] = blockIdx.x == 0 ? sum : c[threadIdx.x] + sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicExch(turn, blockIdx.x + 1);
  }
}
