// Welford, a warp a row; pairs of partial results are merged.
//
// launch: {"kernels": [{"entry": "variance", "grid": ["rows"], "block": [32], "args": ["x", "out", "columns"]}]}
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void variance(const T* x, T* out, long long columns) {
  const T* in = x + blockIdx.x * columns;
  float mean = 0, squares = 0, count = 0;
  for (long long j = threadIdx.x; j < columns; j += 32) {
    const float value = static_cast<float>(in[j]), apart = value - mean;
    count += 1;
    mean += apart / count;
    squares += apart * (value - mean);
  }
  for (int far = 16; far > 0; far /= 2) {
    const float other = __shfl_xor_sync(0xffffffffu, mean, far);
    const float more = __shfl_xor_sync(0xffffffffu, squares, far), n = __shfl_xor_sync(0xffffffffu, count, far);
    const float all = count + n, apart = other - mean;
    if (all > 0) {
      squares += more + apart * apart * count * n / all;  //~ merge: squares += more;
      mean = (mean * count + other * n) / all;
    }
    count = all;
  }
  if (threadIdx.x == 0) out[blockIdx.x] = T(squares / static_cast<float>(columns - 1));  //~ biased: if (threadIdx.x == 0) out[blockIdx.x] = T(squares / static_cast<float>(columns));
}
