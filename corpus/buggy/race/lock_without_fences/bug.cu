extern "C" __global__ void add(int* lock, float* total) {
  while (atomicCAS(lock, 0, 1) != 0) {
  }
  *total = *total + 1.0f;  // BUG: data_race
  atomicExch(lock, 0);
}
