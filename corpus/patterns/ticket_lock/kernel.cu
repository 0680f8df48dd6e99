#include <cuda/atomic>
extern "C" __global__ void add(int* lock, int* total) {
  cuda::atomic_ref<int, cuda::thread_scope_device> next(lock[0]), serving(lock[1]);
  int mine = next.fetch_add(1, cuda::memory_order_relaxed);
  while (serving.load(cuda::memory_order_acquire) != mine) {
  }
  *total = *total + 1;
  serving.store(mine + 1, cuda::memory_order_release);
}
