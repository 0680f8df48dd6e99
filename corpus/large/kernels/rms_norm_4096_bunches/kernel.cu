#include <cuda_bf16.h>
#include <cuda_fp16.h>
using T = ASSAY_T;
constexpr int kBunch = 16, kThreads = 256;
extern "C" __global__ void __launch_bounds__(kThreads) rms_norm(const T* __restrict__ x, const T* __restrict__ weight, float eps,
   T* __restrict__ y, unsigned* next, long long tokens) {
  __shared__ long long drawn;
  __shared__ float partial[kThreads / 32];
  const int thread = threadIdx.x;
  const int bunch = tokens > 8192 ? kBunch : 1;
  const long long bunches = (tokens + bunch - 1) / bunch;
  for (;;) {
    __syncthreads();
    if (thread == 0) drawn = atomicAdd(next, 1u);
    __syncthreads();
    const long long ticket = drawn;
    if (ticket >= bunches) return;
    for (int r = 0; r < bunch; ++r) {
      const long long token = ticket * bunch + r;
      if (token >= tokens) break;
      const T* row = x + token * 4096;
      float squares = 0.0f;
      for (int h = thread; h < 4096; h += kThreads) { const float v = static_cast<float>(row[h]); squares += v * v; }
      for (int o = 16; o > 0; o /= 2) squares += __shfl_xor_sync(0xffffffffu, squares, o);
      if (thread % 32 == 0) partial[thread / 32] = squares;
      __syncthreads();
      float total = 0.0f;
      for (int w = 0; w < kThreads / 32; ++w) total += partial[w];
      const float scale = rsqrtf(total / 4096.0f + eps);
      for (int h = thread; h < 4096; h += kThreads) y[token * 4096 + h] = T(static_cast<float>(row[h]) * scale * static_cast<float>(weight[h]));
      __syncthreads();
    }
  }
}
