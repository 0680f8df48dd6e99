// A warp a token.
//
// launch: {"kernels": [{"entry": "cross_entropy_each", "grid": ["tokens"], "block": [32], "args": ["logits", "target", "out", "vocab"]}]}
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float warp_sum(float x) {
  for (int far = 16; far > 0; far /= 2) x += __shfl_xor_sync(0xffffffffu, x, far);
  return x;
}

__device__ float warp_max(float x) {
  for (int far = 16; far > 0; far /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, far));
  return x;
}

extern "C" __global__ void cross_entropy_each(const T* logits, const long long* target, T* out, long long vocab) {
  const T* in = logits + blockIdx.x * vocab;
  float top = -INFINITY, sum = 0;
  for (long long j = threadIdx.x; j < vocab; j += 32) top = fmaxf(top, static_cast<float>(in[j]));
  top = warp_max(top);
  for (long long j = threadIdx.x; j < vocab; j += 32) sum += expf(static_cast<float>(in[j]) - top);
  sum = warp_sum(sum);
  const long long at = target[blockIdx.x];  //~ index: const long long at = static_cast<unsigned char>(target[blockIdx.x]) % vocab;
  if (threadIdx.x == 0) out[blockIdx.x] = T(logf(sum) + top - static_cast<float>(in[at]));
}
