// What findings say beyond their kind. Compiled with: nvcc -ptx -arch=sm_90 -lineinfo words.cu
#include <cuda_pipeline.h>

#define KERNEL extern "C" __global__ void

// Lanes write one element, with one instruction.
KERNEL lanes_write_one(const float* x, float* y, int n) { y[threadIdx.x / 2] = x[threadIdx.x]; }

// Warps write one element.
KERNEL warps_write_one(const float* x, float* y, int n) { y[threadIdx.x % 32] = x[threadIdx.x]; }

// Rounds of a loop write one element, by different threads.
KERNEL rounds_write_one(const float* x, float* y, int n) {
#pragma unroll 1
  for (int r = 0; r < n; ++r) y[(threadIdx.x + r) % 64] = x[threadIdx.x] + r;
}

// A write and a read by neighbours: within a warp where there is one warp, across warps else.
KERNEL neighbour(const float* x, float* y, int n) {
  __shared__ float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  y[threadIdx.x] = s[threadIdx.x ^ n];
}

// The first pairs that race are of one warp, later ones of two.
KERNEL widens(const float* x, float* y, int n) {
  __shared__ float s[64];
#pragma unroll
  for (int r = 1; r <= 32; r *= 32) {
    s[threadIdx.x] = x[threadIdx.x];
    y[threadIdx.x] = s[threadIdx.x ^ r];
    __syncthreads();
  }
}

KERNEL copy_without_wait(const float* x, float* y, int n) {
  __shared__ alignas(16) float s[128];
  __pipeline_memcpy_async(&s[threadIdx.x * 4], &x[threadIdx.x * 4], 16);
  __pipeline_commit();
  y[threadIdx.x] = s[127 - threadIdx.x * 4];
}
KERNEL copy_unwaited_by_its_own(const float* x, float* y, int n) {
  __shared__ alignas(16) float s[128];
  __pipeline_memcpy_async(&s[threadIdx.x * 4], &x[threadIdx.x * 4], 16);
  __pipeline_commit();
  y[threadIdx.x] = s[threadIdx.x * 4];
}
KERNEL copy_without_barrier(const float* x, float* y, int n) {
  __shared__ alignas(16) float s[128];
  __pipeline_memcpy_async(&s[threadIdx.x * 4], &x[threadIdx.x * 4], 16);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  y[threadIdx.x] = s[127 - threadIdx.x * 4];
}
KERNEL copy_in_order(const float* x, float* y, int n) {
  __shared__ alignas(16) float s[128];
  __pipeline_memcpy_async(&s[threadIdx.x * 4], &x[threadIdx.x * 4], 16);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncwarp();
  y[threadIdx.x] = s[127 - threadIdx.x * 4];
}

// An index that a loop adds to until it wraps.
KERNEL wraps_in_a_loop(const float* x, float* y, int n) {
  float sum = 0;
#pragma unroll 1
  for (int i = n; sum < 100; i += 1024) sum += x[i < 0 ? i : 0];
  y[0] = sum;
}
// An index that is negative by itself.
KERNEL negative(const float* x, float* y, int n) { y[0] = x[n]; }

// The defect is in a helper, which two lines call.
static __device__ __forceinline__ float element(const float* x, int i) {
  return x[i + 1];
}
KERNEL through_a_helper(const float* x, float* y, int n) {
  float a = 0;
  if (n < 100) a = element(x, 0);
  y[0] = a + element(x, n);
}

// Stores that do not race, and of which the last one stays.
KERNEL volatile_stores(const float* x, float* y, int n) { *static_cast<volatile float*>(y) = blockIdx.x; }
KERNEL plain_stores(const float* x, float* y, int n) { y[blockIdx.x] = blockIdx.x; }

// Undefined bytes that a bulk copy takes to an output, and defined ones.
KERNEL copies_undefined(const float* x, float* y, int n) {
  __shared__ alignas(16) float s[32];
  if (threadIdx.x < n) s[threadIdx.x] = 1;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    const unsigned from = static_cast<unsigned>(__cvta_generic_to_shared(s));
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 128;" ::"l"(y), "r"(from) : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
}

// A barrier that some threads pass by.
KERNEL passes_by(const float* x, float* y, int n) {
  __shared__ float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  if (threadIdx.x < 32) {
    __syncthreads();
    y[threadIdx.x] = s[threadIdx.x + 32];
  }
}

// Indices that wrapped on the way: cut down from 64 bits, handed on, divided; and hashes, which are
// meant to.
KERNEL wraps_when_cut(const float* x, float* y, int n) {
  long long wide = static_cast<long long>(n) * n;
  unsigned cut = static_cast<unsigned>(wide >> (n & 1));  // No compiler does that in 32 bits.
  y[threadIdx.x] = x[static_cast<int>(cut)];
}
KERNEL wraps_through_shared(const float* x, float* y, int n) {
  __shared__ int base;
  if (threadIdx.x == 0) base = n * n;
  __syncthreads();
  y[threadIdx.x] = x[base + static_cast<int>(threadIdx.x)];
}
KERNEL wraps_in_one_lane(const float* x, float* y, int n) {
  int base = 0;
  if (threadIdx.x == 0) base = n * n;
  base = __shfl_sync(0xffffffffu, base, 0);
  y[threadIdx.x] = x[base + static_cast<int>(threadIdx.x)];
}
KERNEL wraps_before_a_quotient(const float* x, float* y, int n) {
  y[threadIdx.x] = x[(n * n + static_cast<int>(threadIdx.x)) / 4];
}
static __device__ __noinline__ float at(const float* x, int i) { return x[i]; }
KERNEL wraps_for_a_call(const float* x, float* y, int n) {
  y[threadIdx.x] = at(x, n * n);
}
KERNEL wraps_around_a_loop(const float* x, float* y, int n) {
  int base = n;
#pragma unroll 1
  for (int round = 0; round < 2; ++round) {
    float sum = 0;
#pragma unroll 1
    for (int i = threadIdx.x; i < 64; i += 32) sum += x[round == 0 ? i : base + i];
    y[threadIdx.x] = sum;
    base += 1000;
  }
}
KERNEL hashes_and_reads_beyond(const float* x, float* y, int n) {
  unsigned hash = static_cast<unsigned>(n) * 2654435761u >> 20;
  y[0] = x[hash + 512u];
}

// A store handed to another block by an atomic, without fences; and an atomic that nobody looks at.
KERNEL hands_on_by_atomic(const float* x, float* y, int n) {
  y[blockIdx.x] = 1;
  unsigned before = atomicAdd(reinterpret_cast<unsigned*>(y + 510), 1u);
  if (before == gridDim.x - 1) y[511] = y[0];
}
KERNEL counts_beside(const float* x, float* y, int n) {
  if (blockIdx.x == 0) y[0] = 1;
  atomicAdd(reinterpret_cast<unsigned*>(y + 510), 1u);
  if (blockIdx.x == 1) y[511] = y[0];
}
