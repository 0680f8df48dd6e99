#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ __forceinline__ unsigned lane_id() {
  unsigned l;
  asm("mov.u32 %0, %%laneid;" : "=r"(l));
  return l;
}
__device__ __forceinline__ unsigned lanes_below() {
  unsigned m;
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(m));
  return m;
}

extern "C" __global__ void __launch_bounds__(128)
scatter(const T* __restrict__ src, const long long* __restrict__ index, T* __restrict__ out, long long tokens,
        long long hidden) {
  __shared__ long long list[128];
  __shared__ int counts[4];
  const long long row = blockIdx.x;
  const int warp = threadIdx.x >> 5;
  for (long long h0 = 0; h0 < hidden; h0 += 128) {
    const long long h = h0 + threadIdx.x;
    float acc = 0.0f;
    for (long long t0 = 0; t0 < tokens; t0 += 128) {
      const long long t = t0 + threadIdx.x;
      const bool mine = t < tokens && index[t] == row;
      const unsigned ballot = __ballot_sync(0xffffffffu, mine);
      const int rank = __popc(ballot & lanes_below());
      if (lane_id() == 0) counts[warp] = __popc(ballot);
      __syncthreads();
      int base = 0, total = 0;
      for (int w = 0; w < 4; ++w) {
        if (w < warp) base += counts[w];
        total += counts[w];
      }
      if (mine) list[base + rank] = t;
      __syncthreads();
      if (h < hidden)
        for (int i = 0; i < total; ++i) acc += static_cast<float>(src[list[i] * hidden + h]);
      __syncthreads();
    }
    if (h < hidden) out[row * hidden + h] = T(acc);
  }
}
