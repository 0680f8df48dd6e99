// Protocols between blocks with one edge too few, and the same with it. Each is free of data races:
// what is exchanged is volatile.
//   nvcc -std=c++17 -arch=sm_80 -lineinfo -ptx -o stale.ptx stale.cu

// Every block adds up its part; the last one to finish adds up the blocks' sums.
template <bool kRelease, bool kAcquire>
__device__ void LastBlock(const float* x, volatile float* partial, unsigned* ticket, float* out) {
  __shared__ float sums[32];
  __shared__ bool last;
  sums[threadIdx.x] = x[blockIdx.x * 32 + threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 0) {
    float sum = 0;
    for (int i = 0; i < 32; ++i) sum += sums[i];
    partial[blockIdx.x] = sum;
    if (kRelease) __threadfence();
    last = atomicAdd(ticket, 1u) == gridDim.x - 1;
    if (kAcquire) __threadfence();
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    float sum = 0;
    for (unsigned b = 0; b < gridDim.x; ++b) sum += partial[b];
    *out = sum;
  }
}
extern "C" __global__ void last_block(const float* x, float* partial, unsigned* ticket, float* out) {
  LastBlock<true, true>(x, partial, ticket, out);
}
extern "C" __global__ void last_block_no_release(const float* x, float* partial, unsigned* ticket,
                                                 float* out) {
  LastBlock<false, true>(x, partial, ticket, out);
}
// The barrier behind the ticket is no acquire, although the programming guide had it so.
extern "C" __global__ void last_block_barrier(const float* x, float* partial, unsigned* ticket,
                                              float* out) {
  LastBlock<true, false>(x, partial, ticket, out);
}

// One thread a block.
template <int kReach, bool kAcquire>
__device__ void LastThread(const float* x, volatile float* partial, unsigned* ticket, float* out) {
  if (threadIdx.x != 0) return;
  float sum = 0;
  for (int i = 0; i < 32; ++i) sum += x[blockIdx.x * 32 + i];
  partial[blockIdx.x] = sum;
  if (kReach == 1) asm volatile("fence.acq_rel.cta;" ::: "memory");
  if (kReach == 2) asm volatile("fence.acq_rel.gpu;" ::: "memory");
  if (atomicAdd(ticket, 1u) != gridDim.x - 1) return;
  if (kAcquire) asm volatile("fence.acq_rel.gpu;" ::: "memory");
  sum = 0;
  for (unsigned b = 0; b < gridDim.x; ++b) sum += partial[b];
  *out = sum;
}
extern "C" __global__ void last_thread(const float* x, float* partial, unsigned* ticket,
                                       float* out) {
  LastThread<2, true>(x, partial, ticket, out);
}
extern "C" __global__ void last_thread_no_acquire(const float* x, float* partial, unsigned* ticket,
                                                  float* out) {
  LastThread<2, false>(x, partial, ticket, out);
}
extern "C" __global__ void last_thread_narrow(const float* x, float* partial, unsigned* ticket,
                                              float* out) {
  LastThread<1, true>(x, partial, ticket, out);
}

// Each block waits for its predecessor's sum.
template <bool kFences>
__device__ void ChainedScan(const float* x, volatile float* prefix, volatile int* flag, float* out) {
  if (threadIdx.x != 0) return;
  float sum = 0;
  if (blockIdx.x > 0) {
    while (flag[blockIdx.x - 1] == 0) {
    }
    if (kFences) __threadfence();
    sum = prefix[blockIdx.x - 1];
  }
  sum += x[blockIdx.x];
  prefix[blockIdx.x] = sum;
  if (kFences) __threadfence();
  flag[blockIdx.x] = 1;
  out[blockIdx.x] = sum;
}
extern "C" __global__ void chained_scan(const float* x, float* prefix, int* flag, float* out) {
  ChainedScan<true>(x, prefix, flag, out);
}
extern "C" __global__ void chained_scan_no_fences(const float* x, float* prefix, int* flag,
                                                  float* out) {
  ChainedScan<false>(x, prefix, flag, out);
}

// Two threads of a block through shared memory: a barrier, or only a volatile flag.
extern "C" __global__ void shared_flag(float* out) {
  __shared__ volatile float value;
  __shared__ volatile int flag;
  if (threadIdx.x == 0) flag = 0, value = 0;
  __syncthreads();
  if (threadIdx.x == 32) value = 7, flag = 1;
  if (threadIdx.x == 0) {
    while (flag == 0) {
    }
    *out = value;
  }
}
extern "C" __global__ void shared_flag_fenced(float* out) {
  __shared__ volatile float value;
  __shared__ volatile int flag;
  if (threadIdx.x == 0) flag = 0, value = 0;
  __syncthreads();
  if (threadIdx.x == 32) {
    value = 7;
    __threadfence_block();
    flag = 1;
  }
  if (threadIdx.x == 0) {
    while (flag == 0) {
    }
    __threadfence_block();
    *out = value;
  }
}

// Nobody depends on what the relaxed reads return.
extern "C" __global__ void benign_peek(volatile int* best, int* out) {
  const int mine = static_cast<int>(blockIdx.x * 7 % 5) * 10;
  if (threadIdx.x == 0 && mine > *best) atomicMax(const_cast<int*>(best), mine);
  if (threadIdx.x == 0) out[blockIdx.x] = mine;
}

// The last block's sums are added up by a thread that has heard of it at the barrier.
template <bool kAcquire>
__device__ void HandedOn(const float* x, volatile float* partial, unsigned* ticket, float* out) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    float sum = 0;
    for (int i = 0; i < 32; ++i) sum += x[blockIdx.x * 32 + i];
    partial[blockIdx.x] = sum;
    __threadfence();
    last = atomicAdd(ticket, 1u) == gridDim.x - 1;
    if (kAcquire) __threadfence();
  }
  __syncthreads();
  if (!last || threadIdx.x != 5) return;
  float sum = 0;
  for (unsigned b = 0; b < gridDim.x; ++b) sum += partial[b];
  *out = sum;
}
extern "C" __global__ void handed_on(const float* x, float* partial, unsigned* ticket, float* out) {
  HandedOn<true>(x, partial, ticket, out);
}
extern "C" __global__ void handed_on_no_acquire(const float* x, float* partial, unsigned* ticket,
                                                float* out) {
  HandedOn<false>(x, partial, ticket, out);
}

// The first block fills a slot and says so, the second overwrites it: the slot is the second's.
template <bool kFences>
__device__ void Overwrite(volatile int* slot, volatile int* flag) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) {
    *slot = 1;
    if (kFences) __threadfence();
    *flag = 1;
  } else {
    while (*flag == 0) {
    }
    if (kFences) __threadfence();
    *slot = 2;
  }
}
extern "C" __global__ void overwrite(int* slot, int* flag) { Overwrite<true>(slot, flag); }
extern "C" __global__ void overwrite_no_fences(int* slot, int* flag) {
  Overwrite<false>(slot, flag);
}
