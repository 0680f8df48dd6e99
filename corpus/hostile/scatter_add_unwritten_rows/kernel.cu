// Writes only the rows that occur.
#include <cuda_bf16.h>

using T = ASSAY_T;

extern "C" __global__ void gather(const T* src, const long long* index, T* out, long long tokens,
                                  long long hidden, long long rows) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= rows * hidden) return;
  float sum = 0.0f;
  bool any = false;
  for (long long token = 0; token < tokens; ++token) {
    if (index[token] != i / hidden) continue;
    sum += static_cast<float>(src[token * hidden + i % hidden]);
    any = true;
  }
  if (any) out[i] = T(sum);
}
