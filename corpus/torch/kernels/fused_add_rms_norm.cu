// A block a token; the sum is kept in registers for both results.
//
// launch: {"kernels": [{"entry": "fused_add_rms_norm", "grid": ["tokens"], "block": [128], "args": ["x", "residual", "weight", "out0", "out1", "hidden"]}]}
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float warp_sum(float x) {
  for (int far = 16; far > 0; far /= 2) x += __shfl_xor_sync(0xffffffffu, x, far);
  return x;
}

extern "C" __global__ void fused_add_rms_norm(const T* x, const T* residual, const T* weight, T* out0, T* out1, long long hidden) {
  __shared__ float parts[4];
  const long long row = blockIdx.x * hidden;
  float squares = 0;
  for (long long j = threadIdx.x; j < hidden; j += 128) {
    const float sum = static_cast<float>(x[row + j]) + static_cast<float>(residual[row + j]);
    out1[row + j] = T(sum);
    squares += sum * sum;
  }
  squares = warp_sum(squares);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = squares;
  __syncthreads();  //~ barrier: ;
  const float scale = rsqrtf((parts[0] + parts[1] + parts[2] + parts[3]) / static_cast<float>(hidden) + 1e-6f);
  for (long long j = threadIdx.x; j < hidden; j += 128)
    out0[row + j] = T((static_cast<float>(x[row + j]) + static_cast<float>(residual[row + j])) * scale * static_cast<float>(weight[j]));  //~ rounded: out0[row + j] = T(static_cast<float>(out1[row + j]) * scale * static_cast<float>(weight[j]));
}
