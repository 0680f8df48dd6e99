#include <cuda_fp16.h>
// y[i + 1] = x[i], two at a time.
extern "C" __global__ void shift(const __half* x, __half* y, int n) {
  int i = 2 * threadIdx.x;
  if (i + 1 >= n) return;
  __half2 v = *reinterpret_cast<const __half2*>(x + i);
  *reinterpret_cast<__half2*>(y + i + 1) = v;  // BUG: misaligned
}
