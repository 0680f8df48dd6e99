// Right: parts of a row are added in turn, each block after the one before.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void row_sum(const T* __restrict__ x, volatile float* sums, unsigned* turns,
                                   T* __restrict__ y, long long columns) {
  __shared__ float warps[4];
  const long long parts = (columns + 255) / 256;
  const long long row = blockIdx.x / parts, part = blockIdx.x % parts;
  float s = 0.0f;
  const long long end = columns < (part + 1) * 256 ? columns : (part + 1) * 256;
  for (long long j = part * 256 + threadIdx.x; j < end; j += 128) s += static_cast<float>(x[row * columns + j]);
  for (int o = 16; o > 0; o /= 2) s += __shfl_xor_sync(0xffffffffu, s, o);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = s;
  __syncthreads();
  if (threadIdx.x != 0) return;
  s = warps[0] + warps[1] + warps[2] + warps[3];
  while (atomicAdd(&turns[row], 0u) != part) {
  }
  __threadfence();
  if (part > 0) s += sums[row];
  if (part + 1 == parts) {
    y[row] = T(s);
    return;
  }
  sums[row] = s;
  __threadfence();
  atomicExch(&turns[row], static_cast<unsigned>(part) + 1);
}
