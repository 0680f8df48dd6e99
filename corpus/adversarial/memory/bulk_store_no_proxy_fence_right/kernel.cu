#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

template <int N>
__device__ float block_sum(float v) {
  __shared__ float warps[N / 32];
  for (int o = 16; o > 0; o /= 2) v += __shfl_xor_sync(0xffffffffu, v, o);
  if ((threadIdx.x & 31) == 0) warps[threadIdx.x / 32] = v;
  __syncthreads();
  float s = 0.0f;
  for (int i = 0; i < N / 32; ++i) s += warps[i];
  __syncthreads();
  return s;
}

extern "C" __global__ void rms_norm(const T* __restrict__ x, const T* __restrict__ weight,
                                    float eps, T* __restrict__ y, long long tokens,
                                    long long hidden) {
  __shared__ alignas(128) float tile[256];
  const long long t = blockIdx.x;
  const T* row = x + t * hidden;
  float q = 0.0f;
  for (long long h = threadIdx.x; h < hidden; h += 128) q += row[h] * row[h];
  const float scale = rsqrtf(block_sum<128>(q) / static_cast<float>(hidden) + eps);
  for (long long start = 0; start < hidden; start += 256) {
    const int count = hidden - start < 256 ? static_cast<int>(hidden - start) : 256;
    float* out = y + t * hidden + start;
    for (int i = threadIdx.x; i < count; i += 128)
      tile[i] = row[start + i] * scale * weight[start + i];
    const bool bulk = (reinterpret_cast<unsigned long long>(out) & 15) == 0 && count % 4 == 0;
    if (bulk) {
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
      __syncthreads();
      if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(__cvta_generic_to_global(out)),
                     "r"(static_cast<unsigned>(__cvta_generic_to_shared(tile))), "r"(count * 4)
                     : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
      }
    } else {
      for (int i = threadIdx.x; i < count; i += 128) out[i] = tile[i];
    }
    __syncthreads();
  }
}
