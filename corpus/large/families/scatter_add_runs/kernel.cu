// Right: a block takes sixteen tokens and a stretch of columns, and adds up neighbours that go to the same
// row before it adds them to sums. Within its tokens, offsets are of 32 bits.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

constexpr unsigned kTokens = 16;

extern "C" __global__ void add(const T* __restrict__ src, const long long* __restrict__ index,
                               float* sums, unsigned tokens, unsigned hidden) {
  const unsigned column = blockIdx.y * blockDim.x + threadIdx.x;
  if (column >= hidden) return;
  const unsigned first = blockIdx.x * kTokens;
  const unsigned count = min(kTokens, tokens - first);
  const T* from = src + static_cast<size_t>(first) * hidden + column;
  float sum = 0.0f;
  for (unsigned t = 0; t < count; ++t) {
    sum += static_cast<float>(from[t * hidden]);
    const long long row = index[first + t];
    if (t + 1 < count && index[first + t + 1] == row) continue;
    atomicAdd(&sums[row * hidden + column], sum);
    sum = 0.0f;
  }
}

extern "C" __global__ void store(const float* __restrict__ sums, T* __restrict__ out,
                                 long long rows, long long hidden) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < rows * hidden) out[i] = T(sums[i]);
}
