// A warp a row; of equal elements the first.
//
// launch: {"kernels": [{"entry": "row_extremes", "grid": ["rows"], "block": [32], "args": ["x", "out0", "out1", "out2", "columns"]}]}
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void row_extremes(const T* x, T* out0, T* out1, long long* out2, long long columns) {
  const T* in = x + blockIdx.x * columns;
  float top = -INFINITY, low = INFINITY;
  long long at = columns;
  for (long long j = threadIdx.x; j < columns; j += 32) {
    const float value = static_cast<float>(in[j]);
    if (value > top || at == columns) top = value, at = j;  //~ last: if (value >= top || at == columns) top = value, at = j;
    low = fminf(low, value);
  }
  for (int far = 16; far > 0; far /= 2) {
    const float other = __shfl_xor_sync(0xffffffffu, top, far);
    const long long place = __shfl_xor_sync(0xffffffffu, at, far);
    if (other > top || (other == top && place < at)) top = other, at = place;  //~ tie: if (other > top) top = other, at = place;
    low = fminf(low, __shfl_xor_sync(0xffffffffu, low, far));
  }
  if (threadIdx.x == 0) out0[blockIdx.x] = T(top), out1[blockIdx.x] = T(low), out2[blockIdx.x] = at;
}
