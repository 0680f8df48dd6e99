#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

// Look-back in a fixed order: tiles of 1024 take a ticket, and wait for the sum of the tile on their left.
constexpr int kThreads = 256;
constexpr int kEach = 4;
constexpr int kTile = kThreads * kEach;

__device__ unsigned load_acquire(const unsigned* p) {
  unsigned value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(p) : "memory");
  return value;
}

__device__ void store_release(unsigned* p, unsigned value) {
  asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(value) : "memory");
}

extern "C" __global__ void __launch_bounds__(kThreads) cumsum(const T* __restrict__ x,
    T* __restrict__ y, unsigned* ticket, unsigned* ready, float* prefix, long long columns) {
  __shared__ uint2 place;
  __shared__ float slots[kThreads / 32];
  __shared__ float front;
  const unsigned across = static_cast<unsigned>((columns + kTile - 1) / kTile);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (threadIdx.x == 0) {
    const unsigned taken = atomicAdd(ticket, 1u);
    place = make_uint2(taken / across, taken % across);
  }
  __syncthreads();
  const long long row = place.x, part = place.y;
  const long long tile = row * across + part;
  const T* in = x + row * columns;
  T* out = y + row * columns;
  const long long at = part * kTile + threadIdx.x * kEach;
  float sum[kEach];
  float running = 0.0f;
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    if (at + e < columns) running += static_cast<float>(in[at + e]);
    sum[e] = running;
  }
  float scan = running;
  for (int offset = 1; offset < 32; offset *= 2) {
    const float left = __shfl_up_sync(0xffffffffu, scan, offset);
    if (lane >= offset) scan += left;
  }
  if (lane == 31) slots[warp] = scan;
  float before = __shfl_up_sync(0xffffffffu, scan, 1);
  if (lane == 0) before = 0.0f;
  __syncthreads();
  if (threadIdx.x == 0) {
    float total = 0.0f;
    for (int w = 0; w < kThreads / 32; ++w) total += slots[w];
    float carry = 0.0f;
    if (part > 0) {
      while (load_acquire(ready + tile - 1) == 0u) {
      }
      carry = prefix[tile - 1];
    }
    prefix[tile] = carry + total;
    store_release(ready + tile, 1u);
    front = carry;
  }
  __syncthreads();
  float base = front;
  for (int w = 0; w < warp; ++w) base += slots[w];
  base += before;
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    if (at + e < columns) out[at + e] = T(base + sum[e]);
  }
}
