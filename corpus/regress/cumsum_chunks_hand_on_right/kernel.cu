#include <cuda_bf16.h>
// One pass: chunks of 1024 in the order of a ticket; each waits for the running sum of the chunk before it.
constexpr int kThreads = 256, kItems = 4, kChunk = kThreads * kItems;

extern "C" __global__ __launch_bounds__(kThreads) void cumsum(const __nv_bfloat16* __restrict__ x,
                                                              __nv_bfloat16* __restrict__ y, float* carries,
                                                              int* flags, unsigned* ticket, long long rows,
                                                              long long columns) {
  __shared__ unsigned place;
  __shared__ float warps[8];
  __shared__ float before;
  if (threadIdx.x == 0) place = atomicAdd(ticket, 1u);
  __syncthreads();
  const long long chunks = (columns + kChunk - 1) / kChunk;
  const long long row = place / chunks, chunk = place % chunks;
  const long long base = row * columns;
  const long long first = chunk * kChunk + threadIdx.x * kItems;
  float v[kItems];
  float run = 0.0f;
#pragma unroll
  for (int u = 0; u < kItems; ++u) {
    run += first + u < columns ? __bfloat162float(x[base + first + u]) : 0.0f;
    v[u] = run;
  }
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  float scan = run;
#pragma unroll
  for (int o = 1; o < 32; o <<= 1) {
    const float left = __shfl_up_sync(0xffffffffu, scan, o);
    if (lane >= o) scan += left;
  }
  if (lane == 31) warps[warp] = scan;
  __syncthreads();
  float offset = 0.0f;
  for (int w = 0; w < warp; ++w) offset += warps[w];
  const float up = __shfl_up_sync(0xffffffffu, scan, 1);
  if (lane > 0) offset += up;
  if (threadIdx.x == kThreads - 1) {
    float carry = 0.0f;
    if (chunk > 0) {
      volatile int* flag = flags + place - 1;
      while (*flag == 0) {
      }
      __threadfence();
      carry = *static_cast<volatile float*>(carries + place - 1);
    }
    before = carry;
    if (chunk + 1 < chunks) {
      *static_cast<volatile float*>(carries + place) = carry + (offset + run);
      __threadfence();
      *static_cast<volatile int*>(flags + place) = 1;
    }
  }
  __syncthreads();
  offset += before;
#pragma unroll
  for (int u = 0; u < kItems; ++u)
    if (first + u < columns) y[base + first + u] = __float2bfloat16(offset + v[u]);
}
