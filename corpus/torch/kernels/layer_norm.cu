// A block a row, two passes.
//
// launch: {"kernels": [{"entry": "layer_norm", "grid": ["batch * tokens"], "block": [128], "args": ["x", "weight", "bias", "out", "hidden"]}]}
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float warp_sum(float x) {
  for (int far = 16; far > 0; far /= 2) x += __shfl_xor_sync(0xffffffffu, x, far);
  return x;
}

__device__ float block_sum(float x) {
  __shared__ float parts[4];
  x = warp_sum(x);
  __syncthreads();
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
  __syncthreads();
  return parts[0] + parts[1] + parts[2] + parts[3];
}

extern "C" __global__ void layer_norm(const T* x, const T* weight, const T* bias, T* out, long long hidden) {
  const T* in = x + blockIdx.x * hidden;
  float sum = 0, squares = 0;
  for (long long j = threadIdx.x; j < hidden; j += 128) sum += static_cast<float>(in[j]);
  const float mean = block_sum(sum) / static_cast<float>(hidden);  //~ mean: const float mean = static_cast<float>(T(block_sum(sum) / static_cast<float>(hidden)));
  for (long long j = threadIdx.x; j < hidden; j += 128) {
    const float apart = static_cast<float>(in[j]) - mean;
    squares += apart * apart;
  }
  const float scale = rsqrtf(block_sum(squares) / static_cast<float>(hidden) + 1e-5f);  //~ eps: const float scale = rsqrtf(block_sum(squares) / static_cast<float>(hidden) + 1e-4f);
  for (long long j = threadIdx.x; j < hidden; j += 128)
    out[blockIdx.x * hidden + j] = T((static_cast<float>(in[j]) - mean) * scale * static_cast<float>(weight[j]) + static_cast<float>(bias[j]));
}
