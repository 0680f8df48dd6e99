// Right: chunks of a row into the workspace, added up by a second launch in a fixed order.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

// One block a chunk of 1024 elements.
extern "C" __global__ void partial(const T* __restrict__ x, float* partials, long long rows,
                                   long long columns) {
  const long long chunks = (columns + 1023) / 1024;
  __shared__ float sums[128];
  const long long row = blockIdx.x / chunks;
  const long long chunk = blockIdx.x % chunks;
  float sum = 0.0f;
  const long long end = min(columns, (chunk + 1) * 1024);
  for (long long j = chunk * 1024 + threadIdx.x; j < end; j += 128)
    sum += static_cast<float>(x[row * columns + j]);
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (int half = 64; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) partials[row * chunks + chunk] = sums[0];
}

extern "C" __global__ void finish(const float* partials, T* __restrict__ y, long long rows,
                                  long long columns) {
  const long long row = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const long long chunks = (columns + 1023) / 1024;
  float sum = 0.0f;
  for (long long c = 0; c < chunks; ++c) sum += partials[row * chunks + c];
  y[row] = T(sum);
}
