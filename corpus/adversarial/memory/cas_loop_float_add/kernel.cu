#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ void add_to(unsigned* word, float v) {
  unsigned old = *static_cast<volatile unsigned*>(word), assumed;
  do {
    assumed = old;
    old = atomicCAS(word, assumed, __float_as_uint(__uint_as_float(assumed) + v));
  } while (old != assumed);
}

extern "C" __global__ void rms_norm(const T* __restrict__ x, const T* __restrict__ weight,
                                    float eps, T* __restrict__ y, long long tokens,
                                    long long hidden) {
  __shared__ unsigned squares;
  const long long base = blockIdx.x * hidden;
  if (threadIdx.x == 0) squares = 0;
  __syncthreads();
  float s = 0.0f;
  for (long long h = threadIdx.x; h < hidden; h += 128) s += x[base + h] * x[base + h];
  if (s != 0.0f) add_to(&squares, s);
  __syncthreads();
  const float scale = rsqrtf(__uint_as_float(squares) / static_cast<float>(hidden) + eps);
  for (long long h = threadIdx.x; h < hidden; h += 128) y[base + h] = x[base + h] * scale * weight[h];
}
