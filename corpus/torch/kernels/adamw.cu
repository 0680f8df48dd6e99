// An element a thread.
//
// launch: {"kernels": [{"entry": "adamw", "grid": ["ceil_div(n, 128)"], "block": [128], "args": ["weight", "grad", "first", "second", "out0", "out1", "out2", "n"]}]}
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void adamw(const T* weight, const T* grad, const T* first, const T* second, T* out0, T* out1, T* out2, long long n) {
  const long long i = blockIdx.x * 128ll + threadIdx.x;
  if (i >= n) return;
  const float g = static_cast<float>(grad[i]);
  const float m = 0.9f * static_cast<float>(first[i]) + 0.1f * g;
  const float v = 0.999f * fabsf(static_cast<float>(second[i])) + 0.001f * g * g;
  out1[i] = T(m);
  out2[i] = T(v);
  const float update = m / 0.1f / (sqrtf(v / 0.001f) + 1e-8f);  //~ corrections: const float update = m / (sqrtf(v) + 1e-8f);
  out0[i] = T(static_cast<float>(weight[i]) * 0.999f - 0.001f * update);  //~ decay: out0[i] = T(static_cast<float>(weight[i]) - 0.001f * update);
}
