#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;


// Blocks for chunks of the vocabulary; the block of a token that comes last joins their parts.
constexpr int kThreads = 256;
constexpr int kChunk = 4096;

struct Part {
  float most, sum;
};

__device__ __forceinline__ Part join(Part a, Part b) {
  const float most = fmaxf(a.most, b.most);
  const float from_a = a.most == most ? a.sum : a.sum * expf(a.most - most);
  const float from_b = b.most == most ? b.sum : b.sum * expf(b.most - most);
  return {most, from_a + from_b};
}

extern "C" __global__ void __launch_bounds__(kThreads) cross_entropy(const T* __restrict__ logits, const long long* __restrict__ targets,
                                                                     float2* parts, unsigned* done,
                                                                     float* __restrict__ loss, long long vocab) {
  __shared__ Part shared[kThreads / 32];
  const long long token = blockIdx.x;
  const int chunks = gridDim.y;
  const T* row = logits + token * vocab;
  const long long begin = static_cast<long long>(blockIdx.y) * kChunk;
  const long long end = begin + kChunk < vocab ? begin + kChunk : vocab;
  Part p{__int_as_float(0xff800000), 0.0f};
  for (long long j = begin + threadIdx.x; j < end; j += kThreads) p = join(p, {static_cast<float>(row[j]), 1.0f});
  for (int offset = 16; offset > 0; offset >>= 1) {
    const Part other{__shfl_xor_sync(0xffffffffu, p.most, offset), __shfl_xor_sync(0xffffffffu, p.sum, offset)};
    p = join(p, other);
  }
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = p;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int w = 1; w < kThreads / 32; ++w) p = join(p, shared[w]);
  float2* mine = parts + token * chunks;
  const unsigned slot = blockIdx.y;
  mine[slot] = make_float2(p.most, p.sum);
  __threadfence();
  if (atomicAdd(&done[token], 1u) != chunks - 1u) return;
  __threadfence();
  p = {mine[0].x, mine[0].y};
  for (int i = 1; i < chunks; ++i) p = join(p, {mine[i].x, mine[i].y});
  loss[token] = logf(p.sum) + (p.most - static_cast<float>(row[targets[token]]));
}
