// Logits in chunks: a block reduces 16,384 logits of a token, a second kernel joins the chunks of a token. Tokens in
// planes of 65,535 blocks, as many as a grid has along y.
#include <cuda_bf16.h>

constexpr int kThreads = 256;
constexpr int kChunk = 16384;
constexpr int kChunks = 8;

__device__ void reduce(float& top, float& sum, float* tops, float* sums) {
  tops[threadIdx.x] = top;
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      const float a = tops[threadIdx.x], b = tops[threadIdx.x + half];
      const float most = fmaxf(a, b);
      if (most > -INFINITY) {
        sums[threadIdx.x] = sums[threadIdx.x] * expf(a - most) + sums[threadIdx.x + half] * expf(b - most);
        tops[threadIdx.x] = most;
      }
    }
    __syncthreads();
  }
  top = tops[0];
  sum = sums[0];
}

extern "C" __global__ void parts(const __nv_bfloat16* __restrict__ logits, float2* __restrict__ part, int tokens,
                                 int vocab) {
  __shared__ float tops[kThreads], sums[kThreads];
  const long long token = static_cast<long long>(blockIdx.z) << 16 | blockIdx.y;
  if (token >= tokens) return;
  const int chunk = blockIdx.x;
  const __nv_bfloat16* row = logits + token * vocab;
  const int end = min(vocab, (chunk + 1) * kChunk);
  float top = -INFINITY, sum = 0.0f;
  for (int i = chunk * kChunk + threadIdx.x; i < end; i += kThreads) top = fmaxf(top, __bfloat162float(row[i]));
  if (top > -INFINITY)
    for (int i = chunk * kChunk + threadIdx.x; i < end; i += kThreads) sum += expf(__bfloat162float(row[i]) - top);
  reduce(top, sum, tops, sums);
  if (threadIdx.x == 0) part[token * kChunks + chunk] = make_float2(top, sum);
}

extern "C" __global__ void join(const __nv_bfloat16* __restrict__ logits, const long long* __restrict__ targets,
                                const float2* __restrict__ part, float* __restrict__ loss, int vocab) {
  __shared__ float tops[32], sums[32];
  const long long token = blockIdx.x;
  float top = -INFINITY, sum = 0.0f;
  if (threadIdx.x < kChunks) {
    const float2 mine = part[token * kChunks + threadIdx.x];
    top = mine.x;
    sum = mine.y;
  }
  reduce(top, sum, tops, sums);
  if (threadIdx.x == 0) loss[token] = logf(sum) + (top - __bfloat162float(logits[token * vocab + targets[token]]));
}
