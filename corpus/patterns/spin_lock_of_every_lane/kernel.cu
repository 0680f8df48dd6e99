extern "C" __global__ void add(int* lock, int* total) {
  bool done = false;
  while (!done) {
    if (atomicCAS(lock, 0, 1) == 0) {
      __threadfence();
      *total = *total + 1;
      __threadfence();
      atomicExch(lock, 0);
      done = true;
    }
  }
}
