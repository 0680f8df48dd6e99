extern "C" __global__ void k(const float* x, float* buf, int* ready, float* y) {
  int w = blockIdx.x * 2 + threadIdx.x / 32, l = threadIdx.x % 32;
  buf[w * 32 + l] = x[w * 32 + l] * 3;
  __threadfence();
  __syncwarp();
  if (l == 0) atomicExch(&ready[w], 1);
  if (w > 0) {
    if (l == 0) while (atomicAdd(&ready[w - 1], 0) == 0) {}
    __syncwarp();
    __threadfence();
    y[w * 32 + l] = buf[(w - 1) * 32 + 31 - l];
  }
}
