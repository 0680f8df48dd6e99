// softmax, f16. Rows of up to 512 go to a warp, up to 32768 to a block, longer ones to a block per 16384 columns: those leave
// maximum and sum of their part, and a second kernel joins the parts. Maximum and sum come in one pass (online).
#include <cuda_fp16.h>

constexpr int kThreads = 256;
constexpr int kShort = 512;
constexpr int kChunk = 16384;
constexpr int kMaxParts = 16;  // 262144 / 16384

struct Running {
  float top = -INFINITY;
  float sum = 0.0f;
};

// While all is -inf, the sum stays 0; with +inf it becomes NaN, as it must.
__device__ __forceinline__ void join(Running& a, float top, float sum) {
  const float next = fmaxf(a.top, top);
  if (next > -INFINITY) a.sum = a.sum * __expf(a.top - next) + sum * __expf(top - next);
  a.top = next;
}

union Vector {
  uint4 bits;
  __half item[8];
  __device__ Vector() {}
};

// How many elements lie before the first 16-byte boundary.
__device__ __forceinline__ int head_of(const __half* from, int length) {
  const int head = static_cast<int>((16 - reinterpret_cast<unsigned long long>(from) % 16) % 16) / 2;
  return min(head, length);
}

// What the calling thread of the block sees of from[0 .. length).
__device__ __forceinline__ Running scan(const __half* __restrict__ from, int length) {
  const int head = head_of(from, length);
  const int vectors = (length - head) / 8;
  const uint4* body = reinterpret_cast<const uint4*>(from + head);
  Running mine;
  for (int v = threadIdx.x; v < vectors; v += kThreads) {
    Vector in;
    in.bits = body[v];
    float value[8];
    float next = mine.top;
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      value[e] = __half2float(in.item[e]);
      next = fmaxf(next, value[e]);
    }
    if (next > -INFINITY) {
      float sum = 0.0f;
#pragma unroll
      for (int e = 0; e < 8; ++e) sum += __expf(value[e] - next);
      mine.sum = mine.sum * __expf(mine.top - next) + sum;
      mine.top = next;
    }
  }
  if (threadIdx.x < head) join(mine, __half2float(from[threadIdx.x]), 1.0f);
  const int rest = head + vectors * 8 + threadIdx.x;
  if (rest < length) join(mine, __half2float(from[rest]), 1.0f);
  return mine;
}

// Joins what the threads of a block have seen; all of them get it.
__device__ __forceinline__ Running join_block(Running mine) {
  __shared__ float tops[kThreads / 32], sums[kThreads / 32];
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    const float top = __shfl_xor_sync(0xffffffffu, mine.top, offset);
    const float sum = __shfl_xor_sync(0xffffffffu, mine.sum, offset);
    join(mine, top, sum);
  }
  if (threadIdx.x % 32 == 0) {
    tops[threadIdx.x / 32] = mine.top;
    sums[threadIdx.x / 32] = mine.sum;
  }
  __syncthreads();
  Running all;
#pragma unroll
  for (int w = 0; w < kThreads / 32; ++w) join(all, tops[w], sums[w]);
  return all;
}

__device__ __forceinline__ void write(const __half* __restrict__ from, __half* __restrict__ to, int length, Running all) {
  const float factor = 1.0f / all.sum;
  const int head = head_of(from, length);
  const int vectors = (length - head) / 8;
  const uint4* body = reinterpret_cast<const uint4*>(from + head);
  uint4* out = reinterpret_cast<uint4*>(to + head);
  for (int v = threadIdx.x; v < vectors; v += kThreads) {
    Vector in;
    in.bits = body[v];
#pragma unroll
    for (int e = 0; e < 8; ++e) in.item[e] = __float2half_rn(__expf(__half2float(in.item[e]) - all.top) * factor);
    out[v] = in.bits;
  }
  if (threadIdx.x < head) to[threadIdx.x] = __float2half_rn(__expf(__half2float(from[threadIdx.x]) - all.top) * factor);
  const int rest = head + vectors * 8 + threadIdx.x;
  if (rest < length) to[rest] = __float2half_rn(__expf(__half2float(from[rest]) - all.top) * factor);
}

// A warp a row.
extern "C" __global__ void __launch_bounds__(128)
    short_rows(const __half* __restrict__ x, __half* __restrict__ y, int rows, int columns) {
  const int row = blockIdx.x * 4 + threadIdx.y;
  if (row >= rows) return;
  const int start = row * columns;  // at most 2^20 rows of 512
  float value[kShort / 32];
  float top = -INFINITY;
#pragma unroll
  for (int i = 0; i < kShort / 32; ++i) {
    const int j = threadIdx.x + 32 * i;
    value[i] = j < columns ? __half2float(x[start + j]) : -INFINITY;
    top = fmaxf(top, value[i]);
  }
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, offset));
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < kShort / 32; ++i) {
    value[i] = __expf(value[i] - top);
    if (static_cast<int>(threadIdx.x) + 32 * i < columns) sum += value[i];
  }
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  const float factor = 1.0f / sum;
#pragma unroll
  for (int i = 0; i < kShort / 32; ++i) {
    const int j = threadIdx.x + 32 * i;
    if (j < columns) y[start + j] = __float2half_rn(value[i] * factor);
  }
}

// A block a row.
extern "C" __global__ void __launch_bounds__(kThreads)
    block_rows(const __half* __restrict__ x, __half* __restrict__ y, int columns) {
  const int row = blockIdx.x;
  const long long start = static_cast<long long>(row) * columns;
  const Running all = join_block(scan(x + start, columns));
  write(x + start, y + start, columns, all);
}

// A block a part of a row.
extern "C" __global__ void __launch_bounds__(kThreads)
    parts(const __half* __restrict__ x, float2* __restrict__ part, int columns) {
  const int count = (columns + kChunk - 1) / kChunk;
  const int row = blockIdx.x / count, mine = blockIdx.x % count;
  const __half* from = x + static_cast<long long>(row) * columns + mine * kChunk;
  const Running all = join_block(scan(from, min(kChunk, columns - mine * kChunk)));
  if (threadIdx.x == 0) part[static_cast<long long>(row) * count + mine] = make_float2(all.top, all.sum);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    finish(const __half* __restrict__ x, const float2* __restrict__ part, __half* __restrict__ y, int columns) {
  const int count = (columns + kChunk - 1) / kChunk;
  const int row = blockIdx.x / count, mine = blockIdx.x % count;
  Running all;
  const int lane = threadIdx.x % kMaxParts;
  if (lane < count) {
    const float2 read = part[static_cast<long long>(row) * count + lane];
    all.top = read.x;
    all.sum = read.y;
  }
#pragma unroll
  for (int offset = kMaxParts / 2; offset > 0; offset /= 2) {
    const float top = __shfl_xor_sync(0xffffffffu, all.top, offset);
    const float sum = __shfl_xor_sync(0xffffffffu, all.sum, offset);
    join(all, top, sum);
  }
  const long long start = static_cast<long long>(row) * columns + mine * kChunk;
  write(x + start, y + start, min(kChunk, columns - mine * kChunk), all);
}
