// A thread a row.
//
// launch: {"kernels": [{"entry": "row_extremes", "grid": ["ceil_div(rows, 32)"], "block": [32], "args": ["x", "out0", "out1", "out2", "rows", "columns"]}]}
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void row_extremes(const T* x, T* out0, T* out1, long long* out2, long long rows, long long columns) {
  const long long row = blockIdx.x * 32ll + threadIdx.x;
  if (row >= rows) return;
  const T* in = x + row * columns;
  float most = static_cast<float>(in[0]), least = most;
  long long at = 0;
  for (long long j = 1; j < columns; ++j) {
    const float value = static_cast<float>(in[j]);
    if (value > most) most = value, at = j;
    if (value < least) least = value;
  }
  out0[row] = T(most), out1[row] = T(least), out2[row] = at;
}
