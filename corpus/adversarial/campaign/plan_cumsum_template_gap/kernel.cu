#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

template <int kItems>
__global__ void scan(const T* __restrict__ x, T* __restrict__ y, long long rows,
                     long long columns) {
  __shared__ float totals[4];
  const long long row = blockIdx.x;
  if (row >= rows) return;
  const T* in = x + row * columns;
  T* out = y + row * columns;
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  float carry = 0.0f;
  for (long long start = 0; start < columns; start += 128 * kItems) {
    const long long first = start + static_cast<long long>(threadIdx.x) * kItems;
    float item[kItems];
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      if (first + i < columns) sum += static_cast<float>(in[first + i]);
      item[i] = sum;
    }
    float scanned = sum;
    for (int offset = 1; offset < 32; offset *= 2) {
      const float left = __shfl_up_sync(0xffffffffu, scanned, offset);
      if (lane >= offset) scanned += left;
    }
    float before = __shfl_up_sync(0xffffffffu, scanned, 1);
    if (lane == 0) before = 0.0f;
    if (lane == 31) totals[warp] = scanned;
    __syncthreads();
    float base = carry;
    for (int w = 0; w < 4; ++w) {
      if (w < warp) base += totals[w];
      carry += totals[w];
    }
    base += before;
#pragma unroll
    for (int i = 0; i < kItems; ++i)
      if (first + i < columns) out[first + i] = T(base + item[i]);
    __syncthreads();
  }
}
