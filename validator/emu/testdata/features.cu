// What a kernel may do, done right. Compiled with: nvcc -ptx -arch=sm_90 -lineinfo features.cu
#include <cooperative_groups.h>
#include <cuda_pipeline.h>
#include <cassert>
#include <cstdio>

namespace cg = cooperative_groups;

struct Payload {
  int a[10];
  double d;
};
__device__ __noinline__ Payload Bump(Payload p, int k) {
  p.a[k]++;
  return p;
}
__device__ __noinline__ int AddOne(int x) { return x + 1; }
__device__ __noinline__ int Double(int x) { return x * 2; }
__device__ __noinline__ int Fib(int n) { return n < 2 ? n : Fib(n - 1) + Fib(n - 2); }

// Structs by value, divergent indirect calls, recursion, local arrays with dynamic indices.
extern "C" __global__ void calls(Payload p, int* out, int k) {
  Payload q = Bump(p, k);
  int (*f)(int) = threadIdx.x & 1 ? AddOne : Double;
  out[threadIdx.x] = q.a[k] + (int)q.d + 1000 * f(threadIdx.x) + 1000000 * Fib(threadIdx.x % 8);
}

extern "C" __global__ void heap_and_text(int* out, int k) {
  assert(k >= 0);
  if (k == 77) printf("%d\n", k);
  int* m = (int*)malloc(8);
  m[0] = k;
  m[1] = threadIdx.x;
  out[threadIdx.x] = m[0] + m[1];
  free(m);
}

extern "C" __global__ void jump_table(int* out) {
  switch (threadIdx.x % 9) {
    case 0: out[threadIdx.x] = 3; break;
    case 1: out[threadIdx.x] = 14; break;
    case 2: out[threadIdx.x] = 15; break;
    case 3: out[threadIdx.x] = 92; break;
    case 4: out[threadIdx.x] = 65; break;
    case 5: out[threadIdx.x] = 35; break;
    case 6: out[threadIdx.x] = 89; break;
    case 7: out[threadIdx.x] = 79; break;
    default: out[threadIdx.x] = -1; break;
  }
}

__constant__ int table[4] = {10, 20, 30, 40};
__device__ int counter = 5;
__device__ int* pointer = &counter;

extern "C" __global__ void variables(int* out) {
  out[threadIdx.x] = table[threadIdx.x % 4] + *pointer;
}

// Grid-wide synchronisation through the cooperative workspace.
extern "C" __global__ void reverse_grid(int* out, int n) {
  auto grid = cg::this_grid();
  int i = grid.thread_rank();
  if (i < n) out[i] = i;
  grid.sync();
  int value = i < n ? out[n - 1 - i] : 0;
  grid.sync();
  if (i < n) out[i] = value;
}

// Lanes of one warp take a lock one after the other: needs independent thread scheduling.
__device__ int lock_word;
extern "C" __global__ void spin_lock(int* out) {
  bool done = false;
  while (!done) {
    if (atomicCAS(&lock_word, 0, 1) == 0) {
      __threadfence();
      out[0] = out[0] + 1;
      __threadfence();
      atomicExch(&lock_word, 0);
      done = true;
    }
  }
}

// One lane waits for its sibling: the waiting side comes first in the code.
extern "C" __global__ void sibling_wait(volatile int* flag, int* out) {
  if (threadIdx.x == 0) {
    while (flag[0] == 0) {
    }
    __threadfence();
    out[0] = 1;
  } else if (threadIdx.x == 1) {
    __threadfence();
    flag[0] = 1;
  }
}

// The last block to finish adds up what all have written.
__device__ unsigned finished;
extern "C" __global__ void last_block(const float* x, float* partial, float* out, int n) {
  __shared__ float tile[64];
  __shared__ bool last;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = i < n ? x[i] : 0.0f;
  __syncthreads();
  for (int s = 32; s > 0; s /= 2) {
    if (threadIdx.x < s) tile[threadIdx.x] += tile[threadIdx.x + s];
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = tile[0];
    __threadfence();
    last = atomicAdd(&finished, 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    __threadfence();
    float sum = 0;
    for (int b = 0; b < gridDim.x; ++b) sum += partial[b];
    out[0] = sum;
    finished = 0;
  }
}

// A block waits for its predecessor through a flag.
extern "C" __global__ void chain(unsigned* flags, int* values) {
  if (threadIdx.x == 0) {
    int previous = 0;
    if (blockIdx.x > 0) {
      while (atomicAdd(&flags[blockIdx.x - 1], 0) == 0) {
      }
      __threadfence();
      previous = values[blockIdx.x - 1];
    }
    values[blockIdx.x] = previous + 1;
    __threadfence();
    atomicExch(&flags[blockIdx.x], 1);
  }
}
// The other way round: block 0 waits for the last one, which starts last.
extern "C" __global__ void chain_back(unsigned* flags, int* values) {
  if (threadIdx.x == 0) {
    int previous = 0;
    if (blockIdx.x + 1 < gridDim.x) {
      while (atomicAdd(&flags[blockIdx.x + 1], 0) == 0) {
      }
      __threadfence();
      previous = values[blockIdx.x + 1];
    }
    values[blockIdx.x] = previous + 1;
    __threadfence();
    atomicExch(&flags[blockIdx.x], 1);
  }
}

// Double-buffered cp.async.
extern "C" __global__ void pipeline(const float4* x, float4* y, int steps) {
  __shared__ float4 stage[2][64];
  __pipeline_memcpy_async(&stage[0][threadIdx.x], &x[threadIdx.x], 16);
  __pipeline_commit();
  for (int s = 0; s < steps; ++s) {
    if (s + 1 < steps) {
      __pipeline_memcpy_async(&stage[(s + 1) % 2][threadIdx.x], &x[(s + 1) * 64 + threadIdx.x], 16);
    }
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    float4 v = stage[s % 2][63 - threadIdx.x];
    y[s * 64 + threadIdx.x] = v;
    __syncthreads();
  }
}

// Votes, matches, reductions within parts of a warp.
extern "C" __global__ void warp_ops(int* out) {
  int t = threadIdx.x;
  unsigned odd = __ballot_sync(0xffffffffu, t & 1);
  int r = 0;
  if (t < 8) {
    unsigned mask = 0xff;
    int next = __shfl_down_sync(mask, t, 1);
    r += t < 7 ? next : 8;
    r += __reduce_add_sync(mask, t);
    r += __popc(__match_any_sync(mask, t / 2)) * 100;
    r += __all_sync(mask, t < 8) ? 1000 : 0;
  } else {
    r = __shfl_sync(0xffffff00u, t, 9);
  }
  __syncwarp();
  out[t] = r + (odd == 0xaaaaaaaau ? 100000 : 0);
}

// A thread-block cluster sums through distributed shared memory.
extern "C" __global__ void __cluster_dims__(4, 1, 1) cluster_sum(int* out) {
  __shared__ int value;
  auto cluster = cg::this_cluster();
  if (threadIdx.x == 0) value = blockIdx.x + 1;
  cluster.sync();
  int sum = 0;
  for (unsigned r = 0; r < cluster.num_blocks(); ++r) sum += *cluster.map_shared_rank(&value, r);
  cluster.sync();
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

// Producers and consumers on named barriers.
extern "C" __global__ void specialised(const int* x, int* y, int rounds) {
  __shared__ int slot[32];
  int lane = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    for (int r = 0; r < rounds; ++r) {
      asm volatile("bar.sync 1, 64;" ::: "memory");
      slot[lane] = x[r * 32 + lane];
      asm volatile("bar.arrive 2, 64;" ::: "memory");
    }
  } else {
    asm volatile("bar.arrive 1, 64;" ::: "memory");
    for (int r = 0; r < rounds; ++r) {
      asm volatile("bar.sync 2, 64;" ::: "memory");
      y[r * 32 + lane] = slot[31 - lane];
      if (r + 1 < rounds) asm volatile("bar.arrive 1, 64;" ::: "memory");
    }
  }
}

extern "C" __global__ void counting_barriers(int* out) {
  int n = __syncthreads_count(threadIdx.x % 3 == 0);
  int all = __syncthreads_and(threadIdx.x < 1000);
  int any = __syncthreads_or(threadIdx.x == 63);
  out[threadIdx.x] = n + 1000 * all + 10000 * any;
}

// Threads beyond n leave before the barrier.
extern "C" __global__ void early_exit(int* out, int n) {
  __shared__ int s[64];
  if (threadIdx.x >= n) return;
  s[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = s[n - 1 - threadIdx.x];
}
