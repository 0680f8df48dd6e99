#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;


// Three kernels: sums of chunks, a scan of those (a warp a row), and the chunks themselves with what comes before them.
constexpr int kThreads = 128;
constexpr int kItems = 8;
constexpr int kChunk = kThreads * kItems;

extern "C" __global__ void __launch_bounds__(kThreads) chunk_sums(const T* __restrict__ x, float* __restrict__ sums, long long columns) {
  const long long chunks = (columns + kChunk - 1) / kChunk;
  __shared__ float warps[kThreads / 32];
  const long long row = blockIdx.x / chunks;
  const long long begin = (blockIdx.x - row * chunks) * kChunk;
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    const long long j = begin + i * kThreads + threadIdx.x;
    if (j < columns) sum += static_cast<float>(x[row * columns + j]);
  }
  for (int offset = 16; offset > 0; offset >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) sums[blockIdx.x] = (warps[0] + warps[1]) + (warps[2] + warps[3]);
}

// In place: from sums to what comes before each chunk.
extern "C" __global__ void scan_sums(float* sums, long long rows, long long columns) {
  const long long chunks = (columns + kChunk - 1) / kChunk;
  const long long row = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  const int lane = threadIdx.x;
  float carry = 0.0f;
  for (long long start = 0; start < chunks; start += 32) {
    const long long c = start + lane;
    float value = c < chunks ? sums[row * chunks + c] : 0.0f;
    for (int offset = 1; offset < 32; offset <<= 1) {
      const float left = __shfl_up_sync(0xffffffffu, value, offset);
      if (lane >= offset) value += left;
    }
    float before = __shfl_up_sync(0xffffffffu, value, 1);
    if (lane == 0) before = 0.0f;
    if (c < chunks) sums[row * chunks + c] = carry + before;
    carry += __shfl_sync(0xffffffffu, value, 31);
  }
}

extern "C" __global__ void __launch_bounds__(kThreads) chunk_scan(const T* __restrict__ x, const float* __restrict__ before_chunk,
                                                                  T* __restrict__ y, long long columns) {
  const long long chunks = (columns + kChunk - 1) / kChunk;
  __shared__ float warps[kThreads / 32];
  const long long row = blockIdx.x / chunks;
  const long long begin = (blockIdx.x - row * chunks) * kChunk + threadIdx.x * kItems;
  const T* in = x + row * columns;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  float v[kItems];
  float run = 0.0f;
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    run += begin + i < columns ? static_cast<float>(in[begin + i]) : 0.0f;
    v[i] = run;
  }
  float inclusive = run;
  for (int offset = 1; offset < 32; offset <<= 1) {
    const float left = __shfl_up_sync(0xffffffffu, inclusive, offset);
    if (lane >= offset) inclusive += left;
  }
  if (lane == 31) warps[warp] = inclusive;
  float exclusive = __shfl_up_sync(0xffffffffu, inclusive, 1);
  if (lane == 0) exclusive = 0.0f;
  __syncthreads();
  float before = before_chunk[blockIdx.x];
  for (int w = 0; w < warp; ++w) before += warps[w];
  before += exclusive;
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    if (begin + i < columns) y[row * columns + begin + i] = T(before + v[i]);
  }
}
