#include <cuda_bf16.h>
#include <cuda_fp16.h>
// Rows drawn from a counter; whoever comes last weighs all of them.
constexpr int kThreads = 256;
extern "C" __global__ void __launch_bounds__(kThreads) rms_norm(const float* __restrict__ x, const float* __restrict__ weight, float eps,
   float* y, unsigned* next, unsigned* done, long long tokens) {
  __shared__ long long drawn;
  __shared__ bool last;
  __shared__ float partial[kThreads / 32];
  const int thread = threadIdx.x;
  for (;;) {
    __syncthreads();
    if (thread == 0) drawn = atomicAdd(next, 1u);
    __syncthreads();
    const long long token = drawn;
    if (token >= tokens) break;
    const float* row = x + token * 4096;
    float squares = 0.0f;
    for (int h = thread; h < 4096; h += kThreads) { const float v = row[h]; squares += v * v; }
    for (int o = 16; o > 0; o /= 2) squares += __shfl_xor_sync(0xffffffffu, squares, o);
    if (thread % 32 == 0) partial[thread / 32] = squares;
    __syncthreads();
    float total = 0.0f;
    for (int w = 0; w < kThreads / 32; ++w) total += partial[w];
    const float scale = rsqrtf(total / 4096.0f + eps);
    for (int h = thread; h < 4096; h += kThreads) y[token * 4096 + h] = row[h] * scale;
    __syncthreads();
  }
  __threadfence();
  __syncthreads();
  if (thread == 0) last = atomicAdd(done, 1u) == gridDim.x - 1;
  __syncthreads();
  if (!last) return;
  __threadfence();
  for (long long i = thread; i < tokens * 4096; i += kThreads) y[i] = __ldcg(y + i) * weight[i % 4096];
}
