#include <cuda/pipeline>

__device__ float block_sum(float v) {
  __shared__ float part[32];
  __syncthreads();
  for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
  if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = v;
  __syncthreads();
  float total = 0.0f;
  for (int w = 0; w < (int)(blockDim.x >> 5); ++w) total += part[w];
  return total;
}

extern "C" __global__ void __launch_bounds__(128)
rms_norm(const float* __restrict__ x, const float* __restrict__ weight, float eps, float* __restrict__ y,
         long long tokens, long long hidden) {
  __shared__ float stage[2][128];
  const int t = threadIdx.x;
  const float* in = x + (long long)blockIdx.x * hidden;
  auto pipe = cuda::make_pipeline();
  const long long steps = (hidden + 127) / 128;
  pipe.producer_acquire();
  if (t < hidden) cuda::memcpy_async(&stage[0][t], in + t, sizeof(float), pipe);
  pipe.producer_commit();
  float q = 0.0f;
  for (long long s = 0; s < steps; ++s) {
    const long long ahead = (s + 1) * 128 + t;
    pipe.producer_acquire();
    if (ahead < hidden) cuda::memcpy_async(&stage[(s + 1) & 1][t], in + ahead, sizeof(float), pipe);
    pipe.producer_commit();
    cuda::pipeline_consumer_wait_prior<1>(pipe);
    if (s * 128 + t < hidden) {
      const float v = stage[s & 1][t];
      q += v * v;
    }
    pipe.consumer_release();
  }
  const float inv = rsqrtf(block_sum(q) / static_cast<float>(hidden) + eps);
  for (long long h = t; h < hidden; h += 128)
    y[(long long)blockIdx.x * hidden + h] = in[h] * inv * weight[h];
}
