// A warp a row.
//
// launch: {"kernels": [{"entry": "rms_norm", "grid": ["ceil_div(tokens, 2)"], "block": [32, 2], "args": ["x", "weight", "out", "tokens", "hidden"]}]}
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float warp_sum(float x) {
  for (int far = 16; far > 0; far /= 2) x += __shfl_xor_sync(0xffffffffu, x, far);
  return x;
}

extern "C" __global__ void rms_norm(const T* x, const T* weight, T* out, long long tokens, long long hidden) {
  const long long token = blockIdx.x * 2ll + threadIdx.y;
  if (token >= tokens) return;
  const T* in = x + token * hidden;
  float squares = 0;
  for (long long j = threadIdx.x; j < hidden; j += 32) {
    const float value = static_cast<float>(in[j]);
    squares = fmaf(value, value, squares);  //~ precision: squares = static_cast<float>(T(fmaf(value, value, squares)));
  }
  const float scale = rsqrtf(warp_sum(squares) / static_cast<float>(hidden) + 1e-6f);  //~ eps: const float scale = rsqrtf(warp_sum(squares) / static_cast<float>(hidden));
  for (long long j = threadIdx.x; j < hidden; j += 32)
    out[token * hidden + j] = T(static_cast<float>(in[j]) * scale * static_cast<float>(weight[j]));
}
