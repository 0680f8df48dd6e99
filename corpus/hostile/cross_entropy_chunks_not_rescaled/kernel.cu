// Wrong: chunks past the first are not rescaled.
#include <cuda_fp16.h>
#include <float.h>
// Stage one: a block per (token, chunk of 4096 classes). Stage two: a thread per token.
extern "C" __global__ void chunk_lse(const half* logits, float2* partial, long long vocab) {
  const long long token = blockIdx.x;
  const long long begin = (long long)blockIdx.y * 4096;
  const long long end = min(begin + 4096, vocab);
  __shared__ float red[128];
  float m = -FLT_MAX;
  for (long long i = begin + threadIdx.x; i < end; i += 128) m = fmaxf(m, __half2float(logits[token * vocab + i]));
  red[threadIdx.x] = m;
  __syncthreads();
  for (int s = 64; s > 0; s >>= 1) { if (threadIdx.x < s) red[threadIdx.x] = fmaxf(red[threadIdx.x], red[threadIdx.x + s]); __syncthreads(); }
  m = red[0];
  __syncthreads();
  float sum = 0.f;
  for (long long i = begin + threadIdx.x; i < end; i += 128) sum += expf(__half2float(logits[token * vocab + i]) - m);
  red[threadIdx.x] = sum;
  __syncthreads();
  for (int s = 64; s > 0; s >>= 1) { if (threadIdx.x < s) red[threadIdx.x] += red[threadIdx.x + s]; __syncthreads(); }
  if (threadIdx.x == 0) partial[token * gridDim.y + blockIdx.y] = make_float2(m, red[0]);
}
extern "C" __global__ void finish(const half* logits, const long long* targets, const float2* partial, float* loss, long long tokens, long long vocab) {
  const long long t = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (t >= tokens) return;
  const int chunks = (int)((vocab + 4095) / 4096);
  float m = -FLT_MAX;
  for (int c = 0; c < chunks; ++c) m = fmaxf(m, partial[t * chunks + c].x);
  float s = 0.f;
  for (int c = 0; c < chunks; ++c) s += partial[t * chunks + c].y * (c == 0 ? expf(partial[t * chunks + c].x - m) : 1.f);
  loss[t] = m + logf(s) - __half2float(logits[t * vocab + targets[t]]);
}
