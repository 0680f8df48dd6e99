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

__device__ unsigned ordered(float v) {
  const unsigned u = __float_as_uint(v);
  return u & 0x80000000u ? ~u : u | 0x80000000u;
}
__device__ float number(unsigned u) {
  return __uint_as_float(u & 0x80000000u ? u & 0x7fffffffu : ~u);
}

extern "C" __global__ void cross_entropy(const T* __restrict__ logits,
                                         const long long* __restrict__ targets,
                                         float* __restrict__ loss, long long tokens,
                                         long long vocab) {
  __shared__ unsigned top;
  const T* row = logits + blockIdx.x * vocab;
  if (threadIdx.x == 0) top = ordered(row[0]);
  __syncthreads();
  for (long long v = threadIdx.x; v < vocab; v += 128) {
    const float mine = row[v];
    if (mine > number(*static_cast<volatile unsigned*>(&top)) + 2.0f) atomicMax(&top, ordered(mine));
  }
  __syncthreads();
  const float shift = number(top);
  float s = 0.0f;
  for (long long v = threadIdx.x; v < vocab; v += 128) s += expf(row[v] - shift);
  s = block_sum<128>(s);
  if (threadIdx.x == 0) loss[blockIdx.x] = logf(s) + (shift - row[targets[blockIdx.x]]);
}
