#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cub/block/block_reduce.cuh>
using T = ASSAY_T;

extern "C" __global__ void __launch_bounds__(128)
layer_norm(const T* __restrict__ x, const T* __restrict__ weight, const T* __restrict__ bias, float eps,
           T* __restrict__ y, long long tokens, long long hidden) {
  using Reduce = cub::BlockReduce<float, 128>;
  __shared__ typename Reduce::TempStorage temp;
  __shared__ float shared_mean, shared_scale;
  const T* in = x + (long long)blockIdx.x * hidden;
  T* out = y + (long long)blockIdx.x * hidden;
  float s = 0.0f;
  for (long long h = threadIdx.x; h < hidden; h += 128) s += static_cast<float>(in[h]);
  s = Reduce(temp).Sum(s);
  if (threadIdx.x == 0) shared_mean = s / static_cast<float>(hidden);
  __syncthreads();
  const float mean = shared_mean;
  float q = 0.0f;
  for (long long h = threadIdx.x; h < hidden; h += 128) {
    const float d = static_cast<float>(in[h]) - mean;
    q += d * d;
  }
  q = Reduce(temp).Sum(q);
  if (threadIdx.x == 0) shared_scale = rsqrtf(q / static_cast<float>(hidden) + eps);
  __syncthreads();
  const float scale = shared_scale;
  for (long long h = threadIdx.x; h < hidden; h += 128)
    out[h] = T((static_cast<float>(in[h]) - mean) * scale * static_cast<float>(weight[h]) + static_cast<float>(bias[h]));
}
