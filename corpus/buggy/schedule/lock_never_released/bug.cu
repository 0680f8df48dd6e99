extern "C" __global__ void guarded_add(int* lock, int* total, int limit) {
  while (atomicCAS(lock, 0, 1) != 0) {  // BUG: livelock
  }
  __threadfence();
  if (*total >= limit) return;
  *total += 1;
  __threadfence();
  atomicExch(lock, 0);
}
