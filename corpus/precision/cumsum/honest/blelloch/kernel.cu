// Honest: up and down sweeps over 64 elements in shared memory.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void cumsum(const T* x, T* y, long long rows, long long columns) {
  __shared__ float tree[64];
  const long long row = blockIdx.x;
  float carry = 0.0f;
  for (long long start = 0; start < columns; start += 64) {
    const long long j = start + threadIdx.x;
    const float own = j < columns ? static_cast<float>(x[row * columns + j]) : 0.0f;
    tree[threadIdx.x] = own;
    __syncthreads();
    for (unsigned step = 1; step < 64; step *= 2) {
      if ((threadIdx.x + 1) % (2 * step) == 0) tree[threadIdx.x] += tree[threadIdx.x - step];
      __syncthreads();
    }
    const float all = tree[63];
    __syncthreads();
    if (threadIdx.x == 63) tree[63] = 0.0f;
    __syncthreads();
    for (unsigned step = 32; step > 0; step /= 2) {
      if ((threadIdx.x + 1) % (2 * step) == 0) {
        const float left = tree[threadIdx.x - step];
        tree[threadIdx.x - step] = tree[threadIdx.x];
        tree[threadIdx.x] += left;
      }
      __syncthreads();
    }
    if (j < columns) y[row * columns + j] = T(carry + (tree[threadIdx.x] + own));
    carry += all;
    __syncthreads();
  }
}
