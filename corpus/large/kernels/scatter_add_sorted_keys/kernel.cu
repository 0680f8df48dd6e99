// scatter_add without atomics: chunks of tokens are sorted by row as packed keys (row, token of the chunk) in shared
// memory; then a block a row finds its run in each chunk by bisection, and adds up in the order of tokens.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

constexpr int kBits = 14, kChunk = 1 << kBits;
constexpr int kSorters = 1024, kAdders = 128, kColumns = 4;

__device__ __forceinline__ unsigned pack(long long row, int token) {
  return static_cast<unsigned>(row) << kBits | static_cast<unsigned>(token);
}

extern "C" __global__ void __launch_bounds__(kSorters) sort_chunks(const long long* __restrict__ index, unsigned* __restrict__ keys,
                                                                   long long tokens) {
  extern __shared__ unsigned sorted[];
  const long long first = static_cast<long long>(blockIdx.x) * kChunk;
  const int count = tokens - first < kChunk ? static_cast<int>(tokens - first) : kChunk;
  int size = 1;
  while (size < count) size *= 2;
  for (int i = threadIdx.x; i < size; i += kSorters) sorted[i] = i < count ? pack(index[first + i], i) : 0xffffffffu;
  __syncthreads();
  for (int width = 2; width <= size; width *= 2) {
    for (int apart = width / 2; apart > 0; apart /= 2) {
      for (int i = threadIdx.x; i < size / 2; i += kSorters) {
        const int low = i / apart * apart * 2 + i % apart, high = low + apart;
        const unsigned a = sorted[low], b = sorted[high];
        if ((a > b) == ((low & width) == 0)) {
          sorted[low] = b;
          sorted[high] = a;
        }
      }
      __syncthreads();
    }
  }
  for (int i = threadIdx.x; i < count; i += kSorters) keys[first + i] = sorted[i];
}

// How many of `count` ascending keys are less than `key`, or equal to it where `through`.
__device__ __forceinline__ int bisect(const unsigned* keys, int count, unsigned key, bool through) {
  int low = 0, high = count;
  while (low < high) {
    const int middle = (low + high) / 2;
    const unsigned found = keys[middle];
    if (found < key || (through && found == key)) low = middle + 1;
    else high = middle;
  }
  return low;
}

extern "C" __global__ void __launch_bounds__(kAdders) add_runs(const T* __restrict__ src, const unsigned* __restrict__ keys,
                                                               T* __restrict__ out, long long tokens, long long hidden) {
  __shared__ int begin[kAdders], end[kAdders];
  const long long row = blockIdx.x;
  const long long column = static_cast<long long>(blockIdx.y) * kAdders * kColumns + threadIdx.x;
  const long long chunks = (tokens + kChunk - 1) / kChunk;
  float sum[kColumns] = {};
  for (long long base = 0; base < chunks; base += kAdders) {
    const long long mine = base + threadIdx.x;
    if (mine < chunks) {
      const long long left = tokens - mine * kChunk;
      const int count = left < kChunk ? static_cast<int>(left) : kChunk;
      const unsigned* sorted = keys + mine * kChunk;
      begin[threadIdx.x] = bisect(sorted, count, pack(row, 0), false);
      end[threadIdx.x] = bisect(sorted, count, pack(row, kChunk - 1), true);
    }
    __syncthreads();
    for (int c = 0; c < kAdders && base + c < chunks; ++c) {
      const long long first = (base + c) * kChunk;
      for (int i = begin[c]; i < end[c]; ++i) {
        const T* from = src + (first + (keys[first + i] & (kChunk - 1))) * hidden;
#pragma unroll
        for (int j = 0; j < kColumns; ++j)
          if (column + j * kAdders < hidden) sum[j] += static_cast<float>(from[column + j * kAdders]);
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int j = 0; j < kColumns; ++j)
    if (column + j * kAdders < hidden) out[row * hidden + column + j * kAdders] = T(sum[j]);
}
