// An element a thread.
//
// launch: {"kernels": [{"entry": "lerp_ema", "grid": ["ceil_div(n, 128)"], "block": [128], "args": ["average_value", "value", "out", "n"]}]}
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void lerp_ema(const T* average, const T* value, T* out, long long n) {
  const long long i = blockIdx.x * 128ll + threadIdx.x;
  if (i < n) out[i] = T(fmaf(0.1f, static_cast<float>(value[i]) - static_cast<float>(average[i]), static_cast<float>(average[i])));  //~ decay: if (i < n) out[i] = T(fmaf(0.1001f, static_cast<float>(value[i]) - static_cast<float>(average[i]), static_cast<float>(average[i])));
}
