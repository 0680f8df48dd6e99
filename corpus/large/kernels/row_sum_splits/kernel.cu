// Sum of each row. Short rows: a warp each, a capped grid in turns. Many long rows: persistent
// blocks. Few long rows: each row in splits, which a second kernel adds up.
#include <cuda_bf16.h>

using T = __nv_bfloat16;

constexpr int kWarps = 8;
constexpr long long kWarpBlocks = 2112;  // the cap of the short rows' grid: 16 blocks an SM
constexpr int kMostSplits = 2048;
constexpr int kSplitColumns = 512;

__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

__device__ __forceinline__ float sum_of_eight(const uint4& bits) {
  const __nv_bfloat162* pairs = reinterpret_cast<const __nv_bfloat162*>(&bits);
  const float2 a = __bfloat1622float2(pairs[0]), b = __bfloat1622float2(pairs[1]);
  const float2 c = __bfloat1622float2(pairs[2]), d = __bfloat1622float2(pairs[3]);
  return ((a.x + a.y) + (b.x + b.y)) + ((c.x + c.y) + (d.x + d.y));
}

// What one of kThreads threads adds up of `count` elements, wherever they start.
template <int kThreads>
__device__ __forceinline__ float span_sum(const T* from, long long count, int thread) {
  float sum0 = 0.0f, sum1 = 0.0f, sum2 = 0.0f, sum3 = 0.0f;
  const unsigned past = static_cast<unsigned>(reinterpret_cast<unsigned long long>(from) & 15u);
  long long head = ((16u - past) & 15u) / sizeof(T);
  if (head > count) head = count;
  for (long long j = thread; j < head; j += kThreads) sum0 += __bfloat162float(from[j]);
  const uint4* vectors = reinterpret_cast<const uint4*>(from + head);
  const long long whole = (count - head) / 8;
  long long i = thread;
  for (; i + 3 * kThreads < whole; i += 4 * kThreads) {
    const uint4 a = vectors[i], b = vectors[i + kThreads];
    const uint4 c = vectors[i + 2 * kThreads], d = vectors[i + 3 * kThreads];
    sum0 += sum_of_eight(a);
    sum1 += sum_of_eight(b);
    sum2 += sum_of_eight(c);
    sum3 += sum_of_eight(d);
  }
  for (; i < whole; i += kThreads) sum1 += sum_of_eight(vectors[i]);
  for (long long j = head + whole * 8 + thread; j < count; j += kThreads)
    sum2 += __bfloat162float(from[j]);
  return (sum0 + sum1) + (sum2 + sum3);
}

extern "C" __global__ void __launch_bounds__(256)
    row_sum_warp(const T* __restrict__ x, T* __restrict__ y, long long rows, long long columns) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (long long row = static_cast<long long>(blockIdx.x) * kWarps + warp; row < rows;
       row += kWarpBlocks * kWarps) {
    const float sum = warp_sum(span_sum<32>(x + row * columns, columns, lane));
    if (lane == 0) y[row] = __float2bfloat16(sum);
  }
}

extern "C" __global__ void __launch_bounds__(256)
    row_sum_block(const T* __restrict__ x, T* __restrict__ y, long long rows, long long columns) {
  __shared__ float parts[2][kWarps];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int turn = 0;
  for (long long row = blockIdx.x; row < rows; row += gridDim.x, turn ^= 1) {
    float sum = warp_sum(span_sum<256>(x + row * columns, columns, threadIdx.x));
    if (lane == 0) parts[turn][warp] = sum;
    __syncthreads();
    if (warp == 0) {
      sum = warp_sum(lane < kWarps ? parts[turn][lane] : 0.0f);
      if (lane == 0) y[row] = __float2bfloat16(sum);
    }
  }
}

extern "C" __global__ void __launch_bounds__(64)
    row_sum_split(const T* __restrict__ x, float* __restrict__ partial, long long columns) {
  __shared__ float parts[2];
  const long long splits = gridDim.x, split = blockIdx.x, row = blockIdx.y;
  const long long begin = columns * split / splits;
  const long long end = columns * (split + 1) / splits;
  const float sum = warp_sum(span_sum<64>(x + row * columns + begin, end - begin, threadIdx.x));
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) partial[row * splits + split] = parts[0] + parts[1];
}

extern "C" __global__ void __launch_bounds__(1024)
    row_sum_combine(const float* __restrict__ partial, T* __restrict__ y, long long columns) {
  __shared__ float parts[32];
  const long long row = blockIdx.x;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int splits = static_cast<int>(
      min((columns + kSplitColumns - 1) / kSplitColumns, static_cast<long long>(kMostSplits)));
  float sum = 0.0f;
  for (int split = threadIdx.x; split < splits; split += 1024) sum += partial[row * splits + split];
  sum = warp_sum(sum);
  if (lane == 0) parts[warp] = sum;
  __syncthreads();
  if (warp == 0) {
    sum = warp_sum(parts[lane]);
    if (lane == 0) y[row] = __float2bfloat16(sum);
  }
}
