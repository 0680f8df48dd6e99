#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

// Warps take columns of 512 as they come.
extern "C" __global__ void __launch_bounds__(128) layer_norm(const T* __restrict__ x, const T* __restrict__ weight, const T* __restrict__ bias, float eps, T* __restrict__ y, int hidden) {
  __shared__ int next[2];
  __shared__ float parts[2][4];
  const T* row = x + static_cast<long long>(blockIdx.x) * hidden;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (threadIdx.x < 2) next[threadIdx.x] = 0;
  __syncthreads();
  float mean = 0.0f, scale = 0.0f;
  for (int pass = 0; pass < 2; ++pass) {
    float mine = 0.0f;
    for (;;) {
      int chunk = 0;
      if (lane == 0) chunk = atomicAdd(&next[pass], 512);
      chunk = __shfl_sync(0xffffffffu, chunk, 0);
      if (chunk >= hidden) break;
      for (int i = chunk + lane; i < min(hidden, chunk + 512); i += 32) {
        const float v = static_cast<float>(row[i]) - mean;
        mine += pass == 0 ? v : v * v;
      }
    }
    for (int o = 16; o > 0; o /= 2) mine += __shfl_xor_sync(0xffffffffu, mine, o);
    if (lane == 0) parts[pass][warp] = mine;
    __syncthreads();
    float sum = 0.0f;
    for (int w = 0; w < 4; ++w) sum += parts[pass][w];
    if (pass == 0) mean = sum / hidden;
    else scale = rsqrtf(sum / hidden + eps);
  }
  for (int i = threadIdx.x; i < hidden; i += 128)
    y[static_cast<long long>(blockIdx.x) * hidden + i] = T((static_cast<float>(row[i]) - mean) * scale * static_cast<float>(weight[i]) + static_cast<float>(bias[i]));
}
