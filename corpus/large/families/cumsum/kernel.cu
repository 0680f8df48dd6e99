// Right: a block a row in chunks of 128, at most 65,535 blocks, which take further rows in turns.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / 32;

extern "C" __global__ void cumsum(const T* __restrict__ x, T* __restrict__ y, long long rows,
                                  long long columns) {
  __shared__ float totals[kWarps];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (long long row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* in = x + row * columns;
    T* out = y + row * columns;
    float carry = 0.0f;
    for (long long start = 0; start < columns; start += kThreads) {
      const long long j = start + threadIdx.x;
      float value = j < columns ? static_cast<float>(in[j]) : 0.0f;
      for (int offset = 1; offset < 32; offset *= 2) {
        const float left = __shfl_up_sync(0xffffffffu, value, offset);
        if (lane >= offset) value += left;
      }
      if (lane == 31) totals[warp] = value;
      __syncthreads();
      for (int before = 0; before < warp; ++before) value += totals[before];
      value += carry;
      if (j < columns) out[j] = T(value);
      for (int each = 0; each < kWarps; ++each) carry += totals[each];
      __syncthreads();  // the next chunk comes into the same memory
    }
  }
}
