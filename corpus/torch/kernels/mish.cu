// An element a thread; softplus and tanh as one quotient.
//
// launch: {"kernels": [{"entry": "mish", "grid": ["ceil_div(rows * columns, 256)"], "block": [256], "args": ["x", "out", "rows", "columns"]}]}
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void mish(const T* x, T* out, long long rows, long long columns) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i >= rows * columns) return;
  const float a = static_cast<float>(x[i]);
  const float soft = fmaxf(a, 0.0f) + log1pf(expf(-fabsf(a)));  //~ small: const float soft = logf(1.0f + expf(a));
  out[i] = T(a * tanhf(soft));
}
