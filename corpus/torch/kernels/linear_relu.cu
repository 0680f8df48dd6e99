// Tiles of 16 x 16 in shared memory.
//
// launch: {"kernels": [{"entry": "linear_relu", "grid": ["ceil_div(features, 16)", "ceil_div(tokens, 16)"], "block": [16, 16], "args": ["x", "weight", "bias", "out", "tokens", "hidden", "features"]}]}
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void linear_relu(const T* x, const T* weight, const T* bias, T* out, long long tokens, long long hidden, long long features) {
  __shared__ float left[16][17], right[16][17];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const long long row = blockIdx.y * 16ll + ty, column = blockIdx.x * 16ll + tx;
  float sum = 0;
  for (long long from = 0; from < hidden; from += 16) {
    left[ty][tx] = row < tokens && from + tx < hidden ? static_cast<float>(x[row * hidden + from + tx]) : 0.0f;
    right[ty][tx] = column < features && from + ty < hidden ? static_cast<float>(weight[column * hidden + from + ty]) : 0.0f;
    __syncthreads();
    for (int i = 0; i < 16; ++i) sum = fmaf(left[ty][i], right[i][tx], sum);  //~ precision: for (int i = 0; i < 16; ++i) sum = static_cast<float>(T(fmaf(left[ty][i], right[i][tx], sum)));
    __syncthreads();  //~ barrier: ;
  }
  if (row < tokens && column < features) out[row * features + column] = T(fmaxf(sum + static_cast<float>(bias[column]), 0.0f));
}
