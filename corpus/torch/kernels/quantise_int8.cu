// An element a thread.
//
// launch: {"kernels": [{"entry": "quantise_int8", "grid": ["ceil_div(rows * columns, 128)"], "block": [128], "args": ["x", "scale", "out", "rows", "columns"]}]}
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void quantise_int8(const T* x, const T* scale, signed char* out, long long rows, long long columns) {
  const long long i = blockIdx.x * 128ll + threadIdx.x;
  if (i >= rows * columns) return;
  const float step = fabsf(static_cast<float>(scale[i / columns])) + 0.1f;
  out[i] = static_cast<signed char>(fminf(fmaxf(rintf(static_cast<float>(x[i]) / step), -128.0f), 127.0f));  //~ truncated: out[i] = static_cast<signed char>(fminf(fmaxf(truncf(static_cast<float>(x[i]) / step), -128.0f), 127.0f));
}
