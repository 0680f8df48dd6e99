// Right: terms are dealt out to four blocks, and their sums are added by a second kernel.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

constexpr int kSplits = 4;

// One thread an element and a quarter of its terms.
extern "C" __global__ void parts(const T* __restrict__ a, const T* __restrict__ b,
                                 float* __restrict__ sums, long long m, long long n, long long k) {
  const long long at = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at >= m * n) return;
  const long long i = at / n, j = at % n;
  const long long split = blockIdx.y;
  const long long length = (k + kSplits - 1) / kSplits;
  const long long first = split * length;
  const long long last = min(first + length, k);
  float sum = 0.0f;
  for (long long l = first; l < last; ++l)
    sum += static_cast<float>(a[i * k + l]) * static_cast<float>(b[l * n + j]);
  sums[split * m * n + at] = sum;
}

extern "C" __global__ void add(const float* __restrict__ sums, T* __restrict__ c, long long m,
                               long long n) {
  const long long at = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at >= m * n) return;
  float sum = 0.0f;
  for (int split = 0; split < kSplits; ++split) sum += sums[split * m * n + at];
  c[at] = T(sum);
}
