// Kernels of race_bench whose threads synchronise: what race checking costs as rounds, warps and
// tiles grow. Compiled with: nvcc -ptx -arch=sm_90 -std=c++17 sync.cu
#include <cuda/atomic>

#define KERNEL extern "C" __global__ void

// Every block's first thread takes one lock `rounds` times. Compare-and-swap and fences.
KERNEL lock_fence(int* data, int* lock, int rounds) {
  if (threadIdx.x != 0) return;
  for (int i = 0; i < rounds; ++i) {
    while (atomicCAS(lock, 0, 1) != 0) {
    }
    __threadfence();
    data[0] += 1;
    __threadfence();
    atomicExch(lock, 0);
  }
}

// The same with an acquire and a release operation; each round writes a row of its own as well.
KERNEL lock_acquire(int* data, int* lock, int rounds) {
  if (threadIdx.x != 0) return;
  cuda::atomic_ref<int, cuda::thread_scope_device> at(*lock);
  for (int i = 0; i < rounds; ++i) {
    int expected = 0;
    while (!at.compare_exchange_weak(expected, 1, cuda::memory_order_acquire, cuda::memory_order_relaxed))
      expected = 0;
    data[0] += 1;
    data[1 + blockIdx.x] = i;
    at.store(0, cuda::memory_order_release);
  }
}

// All threads of the block take turns at a lock in shared memory.
KERNEL lock_lanes(int* data, int* lock, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    bool done = false;
    while (!done) {
      if (atomicCAS(lock, 0, 1) == 0) {
        __threadfence();
        data[0] += 1;
        __threadfence();
        atomicExch(lock, 0);
        done = true;
      }
    }
  }
}

// A ticket: read-modify-writes with acquire and release, one chain for the whole launch.
KERNEL ticket(int* data, int* counter, int rounds) {
  cuda::atomic_ref<int, cuda::thread_scope_device> at(*counter);
  for (int i = 0; i < rounds; ++i) {
    __syncthreads();
    if (threadIdx.x == 0) data[at.fetch_add(1, cuda::memory_order_acq_rel) + 1] = i;
  }
}

// Each block waits for the flag of the one before: single-pass scans.
KERNEL flag_chain(int* data, int* flag, int rounds) {
  __shared__ int before;
  for (int i = 0; i < rounds; ++i) {
    if (threadIdx.x == 0) {
      const int me = i * gridDim.x + blockIdx.x;
      cuda::atomic_ref<int, cuda::thread_scope_device> mine(flag[me + 1]), theirs(flag[me]);
      while (me != 0 && theirs.load(cuda::memory_order_acquire) == 0) {
      }
      before = me == 0 ? 0 : data[me - 1];
      data[me] = before + 1;
      mine.store(1, cuda::memory_order_release);
    }
    __syncthreads();
  }
}

// Every warp reads the same words, which somebody might write.
KERNEL readers(int* data, int* out, int rounds) {
  int sum = 0;
  for (int i = 0; i < rounds; ++i) sum += data[i * 32] + data[threadIdx.x % 32];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// C = A B, n by n, by tiles of 16 by 16: A and B are writable memory.
KERNEL tiled_gemm16(float* c, float* ab, int n) {
  __shared__ float ta[16][16], tb[16][16];
  const float *a = ab, *b = ab + n * n;
  const int x = threadIdx.x % 16, y = threadIdx.x / 16;
  const int tiles = n / 16, column = blockIdx.x % tiles * 16 + x, row = blockIdx.x / tiles * 16 + y;
  float sum = 0;
  for (int k0 = 0; k0 < n; k0 += 16) {
    ta[y][x] = a[row * n + k0 + x];
    tb[y][x] = b[(k0 + y) * n + column];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 16; ++k) sum += ta[y][k] * tb[k][x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}

// The same by tiles of 64 by 64, 4 by 4 results a thread.
KERNEL tiled_gemm64(float* c, float* ab, int n) {
  __shared__ float ta[16][64 + 4], tb[16][64];
  const float *a = ab, *b = ab + n * n;
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  const int bx = blockIdx.x % (n / 64), by = blockIdx.x / (n / 64);
  float acc[4][4] = {};
  for (int k0 = 0; k0 < n; k0 += 16) {
    for (int i = threadIdx.x; i < 1024; i += 256) {
      ta[i % 16][i / 16] = a[(by * 64 + i / 16) * n + k0 + i % 16];
      tb[i / 64][i % 64] = b[(k0 + i / 64) * n + bx * 64 + i % 64];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 16; ++k) {
      float ra[4], rb[4];
      for (int i = 0; i < 4; ++i) ra[i] = ta[k][ty * 4 + i];
      for (int j = 0; j < 4; ++j) rb[j] = tb[k][tx * 4 + j];
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) acc[i][j] += ra[i] * rb[j];
    }
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) c[(by * 64 + ty * 4 + i) * n + bx * 64 + tx * 4 + j] = acc[i][j];
}

// Without shared memory: every element of A and B is read by many warps, in writable memory.
KERNEL naive_gemm(float* c, float* ab, int n) {
  const float *a = ab, *b = ab + n * n;
  const int at = blockIdx.x * blockDim.x + threadIdx.x, row = at / n, column = at % n;
  float sum = 0;
  for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + column];
  c[at] = sum;
}
