// An element a thread.
//
// launch: {"kernels": [{"entry": "where_mask", "grid": ["ceil_div(rows * columns, 128)"], "block": [128], "args": ["x", "mask", "out", "rows", "columns"]}]}
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void where_mask(const T* x, const bool* mask, T* out, long long rows, long long columns) {
  const long long i = blockIdx.x * 128ll + threadIdx.x;
  if (i >= rows * columns) return;
  out[i] = mask[i] ? x[i] : T(0.0f);  //~ column: out[i] = mask[i % columns] ? x[i] : T(0.0f);
}
