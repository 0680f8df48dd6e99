// Grid-stride, an element a thread.
//
// launch: {"kernels": [{"entry": "bias_gelu", "grid": ["ceil_div(tokens * hidden, 512)"], "block": [128], "args": ["x", "bias", "out", "tokens", "hidden"]}]}
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void bias_gelu(const T* x, const T* bias, T* out, long long tokens, long long hidden) {
  const long long n = tokens * hidden, step = gridDim.x * 128ll;
  for (long long i = blockIdx.x * 128ll + threadIdx.x; i < n; i += step) {
    const float a = static_cast<float>(x[i]) + static_cast<float>(bias[i % hidden]);
    out[i] = T(0.5f * a * (1.0f + erff(a * 0.70710678f)));  //~ tanh: out[i] = T(0.5f * a * (1.0f + tanhf(0.79788456f * (a + 0.044715f * a * a * a))));
  }
}
