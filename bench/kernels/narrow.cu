// Kernels of race_bench that hand locks on among the threads of a block, by accesses and fences that reach no further.
// Compiled with: nvcc -ptx -arch=sm_90 -std=c++17 narrow.cu
#define KERNEL extern "C" __global__ void

__device__ void Locked(int* data, int* lock, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    while (atomicCAS_block(lock, 0, 1) != 0) {
    }
    __threadfence_block();
    *data += 1;
    __threadfence_block();
    atomicExch_block(lock, 0);
  }
}

// The first lane of each warp takes the lock of its block, which lies in global memory.
KERNEL lock_warps(int* data, int* lock, int rounds) {
  if (threadIdx.x % 32 == 0) Locked(data + blockIdx.x, lock + blockIdx.x, rounds);
}

// The same in shared memory.
KERNEL lock_shared(int* data, int*, int rounds) {
  __shared__ int lock, sum;
  if (threadIdx.x == 0) lock = sum = 0;
  __syncthreads();
  if (threadIdx.x % 32 == 0) Locked(&sum, &lock, rounds);
  __syncthreads();
  if (threadIdx.x == 0) data[blockIdx.x] = sum;
}

// All lanes of a warp take turns.
KERNEL lock_turns(int* data, int* lock, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    for (bool done = false; !done;) {
      if (atomicCAS_block(lock + blockIdx.x, 0, 1) == 0) {
        __threadfence_block();
        data[blockIdx.x] += 1;
        __threadfence_block();
        atomicExch_block(lock + blockIdx.x, 0);
        done = true;
      }
    }
  }
}

// A lock of device scope that several threads of each block take.
KERNEL lock_both(int* data, int* lock, int rounds) {
  if (threadIdx.x % 32 != 0) return;
  for (int i = 0; i < rounds; ++i) {
    while (atomicCAS(lock, 0, 1) != 0) {
    }
    __threadfence();
    data[0] += 1;
    __threadfence();
    atomicExch(lock, 0);
  }
}
