// A warp a row, 32 at a time, by shuffles.
//
// launch: {"kernels": [{"entry": "cumsum", "grid": ["rows"], "block": [32], "args": ["x", "out", "columns"]}]}
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void cumsum(const T* x, T* out, long long columns) {
  const long long row = blockIdx.x * columns;
  const int lane = threadIdx.x;
  float carried = 0;
  for (long long j = lane; j < (columns + 31) / 32 * 32; j += 32) {
    float sum = j < columns ? static_cast<float>(x[row + j]) : 0.0f;
    for (int far = 1; far < 32; far *= 2) {
      const float other = __shfl_up_sync(0xffffffffu, sum, far);
      if (lane >= far) sum += other;
    }
    sum += carried;
    if (j < columns) out[row + j] = T(sum);
    carried = __shfl_sync(0xffffffffu, sum, 31);  //~ precision: carried = static_cast<float>(__float2bfloat16(__shfl_sync(0xffffffffu, sum, 31)));
  }
}
