#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

// Cooperative, in three phases: the largest of each token by integer atomics, sums of chunks, then the losses.
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kChunk = 2048;

// Unsigned integers in the order of the floats; 0 is below all of them.
__device__ unsigned key_of(float value) {
  const unsigned bits = __float_as_uint(value);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

__device__ float value_of(unsigned key) {
  return __uint_as_float(key & 0x80000000u ? key & 0x7fffffffu : ~key);
}

extern "C" __global__ void __launch_bounds__(kThreads) cross_entropy(const T* __restrict__ logits,
    const long long* __restrict__ targets, unsigned* keys, float* sums, float* __restrict__ loss,
    long long tokens, int vocab) {
  __shared__ float slots[kWarps];
  const cg::grid_group grid = cg::this_grid();
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int across = (vocab + kChunk - 1) / kChunk;
  const long long items = tokens * across;
  for (long long item = blockIdx.x; item < items; item += gridDim.x) {
    const T* row = logits + item / across * vocab;
    const int start = static_cast<int>(item % across) * kChunk;
    const int end = min(vocab, start + kChunk);
    unsigned best = 0u;
    for (int v = start + threadIdx.x; v < end; v += kThreads)
      best = max(best, key_of(static_cast<float>(row[v])));
    best = __reduce_max_sync(0xffffffffu, best);
    if (lane == 0) atomicMax(keys + item / across, best);
  }
  grid.sync();
  for (long long item = blockIdx.x; item < items; item += gridDim.x) {
    const T* row = logits + item / across * vocab;
    const float largest = value_of(keys[item / across]);
    const int start = static_cast<int>(item % across) * kChunk;
    const int end = min(vocab, start + kChunk);
    float sum = 0.0f;
    for (int v = start + threadIdx.x; v < end; v += kThreads)
      sum += expf(static_cast<float>(row[v]) - largest);
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    if (lane == 0) slots[warp] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
      float total = 0.0f;
      for (int w = 0; w < kWarps; ++w) total += slots[w];
      sums[item] = total;
    }
    __syncthreads();
  }
  grid.sync();
  const long long stride = static_cast<long long>(gridDim.x) * kThreads;
  for (long long token = static_cast<long long>(blockIdx.x) * kThreads + threadIdx.x; token < tokens;
       token += stride) {
    float total = 0.0f;
    for (int p = 0; p < across; ++p) total += sums[token * across + p];
    loss[token] = logf(total) +
                  (value_of(keys[token]) - static_cast<float>(logits[token * vocab + targets[token]]));
  }
}
