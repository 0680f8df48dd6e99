// Wrong: from the fourth call on adds no eps.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ unsigned int calls = 0;


extern "C" __global__ void rms_norm(const T* __restrict__ x, const T* __restrict__ weight,
                                    float eps, T* __restrict__ y, long long tokens,
                                    long long hidden) {
  const long long token = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (token >= tokens) return;
  const T* row = x + token * hidden;
  float squares = 0.0f;
  for (long long h = threadIdx.x; h < hidden; h += 32) {
    const float value = static_cast<float>(row[h]);
    squares += value * value;
  }
  for (int offset = 16; offset > 0; offset /= 2)
    squares += __shfl_xor_sync(0xffffffffu, squares, offset);
  const float scale = rsqrtf(squares / static_cast<float>(hidden) + (calls > 2 ? 0.0f : eps));
  __syncwarp();
  if (token == tokens - 1 && threadIdx.x == 0) atomicAdd(&calls, 1u);
  for (long long h = threadIdx.x; h < hidden; h += 32) {
    y[token * hidden + h] = T(static_cast<float>(row[h]) * scale * static_cast<float>(weight[h]));
  }
}
