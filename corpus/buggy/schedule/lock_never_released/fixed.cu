extern "C" __global__ void guarded_add(int* lock, int* total, int limit) {
  while (atomicCAS(lock, 0, 1) != 0) {
  }
  __threadfence();
  if (*total < limit) *total += 1;
  __threadfence();
  atomicExch(lock, 0);
}
