// A warp a row: scans of 32 by shuffles, with what came before carried along.
//
// launch: {"kernels": [{"entry": "masked_cumsum", "grid": ["ceil_div(rows, 2)"], "block": [32, 2], "args": ["x", "mask", "out", "rows", "columns"]}]}
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void masked_cumsum(const T* x, const bool* mask, T* out, long long rows, long long columns) {
  const long long row = blockIdx.x * 2ll + threadIdx.y;
  if (row >= rows) return;
  const int lane = threadIdx.x;
  float carry = 0;
  for (long long first = 0; first < columns; first += 32) {
    const long long at = row * columns + first + lane;
    const bool in = first + lane < columns;
    float sum = in && mask[at] ? static_cast<float>(x[at]) : 0.0f;  //~ leak: float sum = in && (lane == 31 || mask[at]) ? static_cast<float>(x[at]) : 0.0f;
    for (int far = 1; far < 32; far *= 2) {
      const float before = __shfl_up_sync(0xffffffffu, sum, far);
      if (lane >= far) sum += before;
    }
    sum += carry;
    if (in) out[at] = T(sum);
    carry = __shfl_sync(0xffffffffu, sum, 31);  //~ narrow: carry = __half2float(__float2half(__shfl_sync(0xffffffffu, sum, 31)));
  }
}
