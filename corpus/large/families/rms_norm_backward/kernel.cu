// Right: a warp a row in turns of 8192 blocks; a block 32 columns.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

// A warp a row, in turns.
extern "C" __global__ void rows(const T* __restrict__ x, const T* __restrict__ weight,
                                const T* __restrict__ grad_out, const float* __restrict__ rstd,
                                T* __restrict__ grad_x, long long tokens, long long hidden) {
  const long long step = static_cast<long long>(gridDim.x) * blockDim.y;
  for (long long token = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y;
       token < tokens; token += step) {
    const T* row = x + token * hidden;
    const T* g = grad_out + token * hidden;
    float dot = 0.0f;
    for (long long h = threadIdx.x; h < hidden; h += 32)
      dot += static_cast<float>(g[h]) * static_cast<float>(weight[h]) * static_cast<float>(row[h]);
    for (int offset = 16; offset > 0; offset /= 2)
      dot += __shfl_xor_sync(0xffffffffu, dot, offset);
    const float scale = rstd[token];
    const float slope = scale * scale * (dot / static_cast<float>(hidden));
    for (long long h = threadIdx.x; h < hidden; h += 32) {
      const float gradient = static_cast<float>(g[h]) * static_cast<float>(weight[h]);
      grad_x[token * hidden + h] = T(scale * (gradient - static_cast<float>(row[h]) * slope));
    }
  }
}

// A block 32 columns: eight warps take every eighth token.
extern "C" __global__ void columns(const T* __restrict__ x, const T* __restrict__ grad_out,
                                   const float* __restrict__ rstd, T* __restrict__ grad_weight,
                                   long long tokens, long long hidden) {
  __shared__ float partial[8][32];
  const long long h = static_cast<long long>(blockIdx.x) * 32 + threadIdx.x;
  float sum = 0.0f;
  for (long long token = threadIdx.y; token < tokens && h < hidden; token += 8) {
    const long long at = token * hidden + h;
    sum += static_cast<float>(grad_out[at]) * static_cast<float>(x[at]) * rstd[token];
  }
  partial[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || h >= hidden) return;
  float total = 0.0f;
  for (int warp = 0; warp < 8; ++warp) total += partial[warp][threadIdx.x];
  grad_weight[h] = T(total);
}
