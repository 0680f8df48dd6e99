// Memory orders and scopes, latches and semaphores, spin locks, vote and match.
#include <cuda/atomic>
#include <cuda/latch>
#include <cuda/semaphore>

__device__ cuda::atomic<unsigned, cuda::thread_scope_device> ticket;
__device__ int lock_word;
__managed__ int managed_counter = 3;

__global__ void orders(int* data, long long* wide, float* sums) {
  cuda::atomic_ref<int, cuda::thread_scope_system> system(data[0]);
  cuda::atomic_ref<int, cuda::thread_scope_block> block(data[1]);
  cuda::atomic_ref<long long, cuda::thread_scope_device> device(wide[0]);
  cuda::atomic_ref<float, cuda::thread_scope_device> sum(sums[0]);
  system.fetch_add(1, cuda::memory_order_seq_cst);
  block.fetch_xor(3, cuda::memory_order_acq_rel);
  device.fetch_max(5, cuda::memory_order_relaxed);
  sum.fetch_add(1.5f, cuda::memory_order_relaxed);
  long long expected = 3;
  while (!device.compare_exchange_weak(expected, 4, cuda::memory_order_release,
                                       cuda::memory_order_acquire)) {
  }
  if (ticket.fetch_add(1) + 1 == gridDim.x) ticket.store(0, cuda::memory_order_release);
  cuda::atomic_thread_fence(cuda::memory_order_seq_cst, cuda::thread_scope_device);
  cuda::atomic_thread_fence(cuda::memory_order_acq_rel, cuda::thread_scope_block);
  while (atomicCAS(&lock_word, 0, 1) != 0) __nanosleep(20);
  ++managed_counter;
  __threadfence();
  atomicExch(&lock_word, 0);
  const unsigned peers = __match_any_sync(__activemask(), data[threadIdx.x]);
  int all = 0;
  __match_all_sync(~0u, data[2], &all);
  if (__all_sync(~0u, all) && __any_sync(peers, all))
    data[3] = __popc(__ballot_sync(~0u, peers > 3));
  wide[1] = __shfl_up_sync(~0u, wide[2], 2) + __shfl_xor_sync(~0u, data[3], 4, 16);
}

__global__ void waits(int* data) {
  __shared__ alignas(16) char latch_storage[sizeof(cuda::latch<cuda::thread_scope_block>)];
  __shared__ alignas(16) char semaphore_storage[64];
  auto& done = *reinterpret_cast<cuda::latch<cuda::thread_scope_block>*>(latch_storage);
  auto& slots =
      *reinterpret_cast<cuda::counting_semaphore<cuda::thread_scope_block, 4>*>(semaphore_storage);
  if (threadIdx.x == 0) {
    new (&done) cuda::latch<cuda::thread_scope_block>(blockDim.x);
    new (&slots) cuda::counting_semaphore<cuda::thread_scope_block, 4>(2);
  }
  __syncthreads();
  slots.acquire();
  data[threadIdx.x] += 1;
  slots.release();
  done.arrive_and_wait();
}
