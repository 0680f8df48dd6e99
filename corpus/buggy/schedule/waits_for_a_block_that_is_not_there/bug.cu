extern "C" __global__ void chain(int* flags, int* y) {
  int b = blockIdx.x;
  while (atomicAdd(&flags[b + 1], 0) == 0) {  // BUG: livelock
  }
  __threadfence();
  y[b] = 1;
  __threadfence();
  atomicExch(&flags[b], 1);
}
