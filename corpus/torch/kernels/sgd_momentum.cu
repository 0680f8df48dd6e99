// An element a thread, both results.
//
// launch: {"kernels": [{"entry": "sgd_momentum", "grid": ["ceil_div(n, 128)"], "block": [128], "args": ["weight", "grad", "momentum", "out0", "out1", "n"]}]}
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void sgd_momentum(const T* weight, const T* grad, const T* momentum, T* out0, T* out1, long long n) {
  const long long i = blockIdx.x * 128ll + threadIdx.x;
  if (i >= n) return;
  const float m = 0.9f * static_cast<float>(momentum[i]) + static_cast<float>(grad[i]);
  out1[i] = T(m);
  out0[i] = T(static_cast<float>(weight[i]) - 0.1f * m);  //~ stale: out0[i] = T(static_cast<float>(weight[i]) - 0.1f * static_cast<float>(momentum[i]));
}
