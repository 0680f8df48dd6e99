// Right: a block a row, the row kept in dynamic shared memory.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void rms_norm(const T* __restrict__ x, const T* __restrict__ weight,
                                    float eps, T* __restrict__ y, long long tokens,
                                    long long hidden) {
  extern __shared__ float kept[];
  __shared__ float parts[8];
  const T* row = x + static_cast<long long>(blockIdx.x) * hidden;
  float squares = 0.0f;
  for (long long h = threadIdx.x; h < hidden; h += 256) {
    const float value = static_cast<float>(row[h]);
    kept[h] = value;
    squares += value * value;
  }
  for (int offset = 16; offset > 0; offset /= 2)
    squares += __shfl_down_sync(0xffffffffu, squares, offset);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = squares;
  __syncthreads();
  float total = 0.0f;
  for (int warp = 0; warp < 8; ++warp) total += parts[warp];
  const float scale = rsqrtf(total / static_cast<float>(hidden) + eps);
  T* out = y + static_cast<long long>(blockIdx.x) * hidden;
  for (long long h = threadIdx.x; h < hidden; h += 256)
    out[h] = T(kept[h] * scale * static_cast<float>(weight[h]));
}
