// A block a row, mean and squares of differences in two passes over it.
//
// launch: {"kernels": [{"entry": "modulated_norm", "grid": ["tokens", "batch"], "block": [96], "args": ["x", "scale", "shift", "out", "tokens", "hidden"]}]}
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float block_sum(float x) {
  __shared__ float parts[3];
  for (int far = 16; far > 0; far /= 2) x += __shfl_down_sync(0xffffffffu, x, far);
  __syncthreads();  // Of an earlier sum all have read.
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
  __syncthreads();
  return parts[0] + parts[1] + parts[2];
}

extern "C" __global__ void modulated_norm(const T* x, const T* scale, const T* shift, T* out, long long tokens, long long hidden) {
  const long long row = (blockIdx.y * tokens + blockIdx.x) * hidden;
  const long long of = blockIdx.y * hidden;  //~ token: const long long of = blockIdx.x % gridDim.y * hidden;
  float sum = 0;
  for (long long c = threadIdx.x; c < hidden; c += 96) sum += static_cast<float>(x[row + c]);
  const float mean = block_sum(sum) / static_cast<float>(hidden);
  float squares = 0;
  for (long long c = threadIdx.x; c < hidden; c += 96) {
    const float apart = static_cast<float>(x[row + c]) - mean;  //~ precision: const float apart = static_cast<float>(T(static_cast<float>(x[row + c]) - static_cast<float>(T(mean))));
    squares = fmaf(apart, apart, squares);
  }
  const float factor = rsqrtf(block_sum(squares) / static_cast<float>(hidden) + 1e-5f);
  for (long long c = threadIdx.x; c < hidden; c += 96) {
    const float normal = (static_cast<float>(x[row + c]) - mean) * factor;
    out[row + c] = T(normal * (1.0f + static_cast<float>(scale[of + c])) + static_cast<float>(shift[of + c]));  //~ plain: out[row + c] = T(normal * static_cast<float>(scale[of + c]) + static_cast<float>(shift[of + c]));
  }
}
