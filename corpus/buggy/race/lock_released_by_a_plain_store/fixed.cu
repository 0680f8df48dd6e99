extern "C" __global__ void add(int* lock, float* total) {
  while (atomicCAS(lock, 0, 1) != 0) {
  }
  __threadfence();
  *total = *total + 1.0f;
  __threadfence();
  atomicExch(lock, 0);
}
