// Softmax in bf16, three plans: up to 1024 columns a warp with the row in registers; up to 16384 a block with the row in shared memory; past
// that a cluster of eight blocks, each with an eighth of the row in shared memory and a running maximum, whose results meet by distributed
// shared memory. Rows are cut at 16 bytes, wherever they begin: only the first and the last vector of a row can be partial.
#include <cooperative_groups.h>
#include <cuda_bf16.h>

namespace cg = cooperative_groups;
using T = __nv_bfloat16;

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kBlockVectors = 16384 / 8 + 1;
constexpr int kRanks = 8;
constexpr unsigned kAll = 0xffffffffu;

__device__ __forceinline__ float value_of(const uint4& v, int k) {
  const unsigned both = k / 2 == 0 ? v.x : k / 2 == 1 ? v.y : k / 2 == 2 ? v.z : v.w;
  return __uint_as_float(k % 2 == 0 ? both << 16 : both & 0xffff0000u);
}

__device__ __forceinline__ unsigned packed(float a, float b) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(a, b);
  return *reinterpret_cast<const unsigned*>(&both);
}

__device__ __forceinline__ float warp_max(float value) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) value = fmaxf(value, __shfl_xor_sync(kAll, value, offset));
  return value;
}

__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(kAll, value, offset);
  return value;
}

// A row in vectors of 8 that start at 16 bytes. Values of the vectors that are not the row's read as -infinity, and are not written.
struct Row {
  const T* from;
  T* to;
  int begin;  // of the first vector's values, those before are the row's before
  int end;

  __device__ __forceinline__ Row(const T* x, T* y, long long row, int columns) {
    const long long first = row * columns;
    begin = static_cast<int>(first % 8);
    end = begin + columns;
    from = x + (first - begin);
    to = y + (first - begin);
  }
  __device__ __forceinline__ int vectors() const { return (end + 7) / 8; }
  __device__ __forceinline__ bool whole(int v) const { return 8 * v >= begin && 8 * v + 8 <= end; }
  __device__ __forceinline__ uint4 load(int v) const {
    if (whole(v)) return reinterpret_cast<const uint4*>(from)[v];
    float f[8];
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      const int j = 8 * v + k;
      f[k] = j >= begin && j < end ? __bfloat162float(from[j]) : -INFINITY;
    }
    return make_uint4(packed(f[0], f[1]), packed(f[2], f[3]), packed(f[4], f[5]), packed(f[6], f[7]));
  }
  // exp(x - largest) * factor
  __device__ __forceinline__ void store(int v, const uint4& x, float largest, float factor) const {
    float f[8];
#pragma unroll
    for (int k = 0; k < 8; ++k) f[k] = expf(value_of(x, k) - largest) * factor;
    if (whole(v)) {
      reinterpret_cast<uint4*>(to)[v] = make_uint4(packed(f[0], f[1]), packed(f[2], f[3]), packed(f[4], f[5]), packed(f[6], f[7]));
    } else {
#pragma unroll
      for (int k = 0; k < 8; ++k) {
        const int j = 8 * v + k;
        if (j >= begin && j < end) to[j] = __float2bfloat16_rn(f[k]);
      }
    }
  }
};

__device__ __forceinline__ float largest_of(const uint4& v) {
  float largest = value_of(v, 0);
#pragma unroll
  for (int k = 1; k < 8; ++k) largest = fmaxf(largest, value_of(v, k));
  return largest;
}

__device__ __forceinline__ float exponentials_of(const uint4& v, float largest) {
  float sum = 0.0f;
#pragma unroll
  for (int k = 0; k < 8; ++k) sum += expf(value_of(v, k) - largest);
  return sum;
}

// A maximum and the sum of exp(x - maximum).
struct Partial {
  float largest, sum;
};

__device__ __forceinline__ Partial merged(const Partial& a, const Partial& b) {
  const float largest = fmaxf(a.largest, b.largest);
  // Nothing but -infinity so far: 0, not exp(-infinity + infinity).
  const float sum_a = a.largest == -INFINITY ? 0.0f : a.sum * expf(a.largest - largest);
  const float sum_b = b.largest == -INFINITY ? 0.0f : b.sum * expf(b.largest - largest);
  return {largest, sum_a + sum_b};
}

__device__ __forceinline__ void add(Partial& running, const uint4& v) {
  const float largest = largest_of(v);
  if (largest > running.largest) {
    running.sum *= expf(running.largest - largest);
    running.largest = largest;
  }
  if (running.largest != -INFINITY) running.sum += exponentials_of(v, running.largest);
}

// columns <= 1024
extern "C" __global__ void __launch_bounds__(kThreads) in_registers(const T* __restrict__ x, T* __restrict__ y, long long rows,
                                                                    int columns) {
  const int lane = threadIdx.x % 32;
  const long long i = static_cast<long long>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (i >= rows) return;
  const Row row(x, y, i, columns);
  uint4 held[5];
  float largest = -INFINITY;
#pragma unroll
  for (int n = 0; n < 5; ++n) {
    const int v = lane + 32 * n;
    if (v < row.vectors()) {
      held[n] = row.load(v);
      largest = fmaxf(largest, largest_of(held[n]));
    }
  }
  largest = warp_max(largest);
  float sum = 0.0f;
#pragma unroll
  for (int n = 0; n < 5; ++n)
    if (lane + 32 * n < row.vectors()) sum += exponentials_of(held[n], largest);
  const float factor = 1.0f / warp_sum(sum);
#pragma unroll
  for (int n = 0; n < 5; ++n)
    if (lane + 32 * n < row.vectors()) row.store(lane + 32 * n, held[n], largest, factor);
}

// 1024 < columns <= 16384
extern "C" __global__ void __launch_bounds__(kThreads) in_a_block(const T* __restrict__ x, T* __restrict__ y, long long rows,
                                                                  int columns) {
  __shared__ uint4 cache[kBlockVectors];  // a thread reads what it wrote itself
  __shared__ float maxima[kWarps];
  __shared__ float sums[kWarps];
  for (long long i = blockIdx.x; i < rows; i += gridDim.x) {
    const Row row(x, y, i, columns);
    float largest = -INFINITY;
    for (int v = threadIdx.x; v < row.vectors(); v += kThreads) {
      cache[v] = row.load(v);
      largest = fmaxf(largest, largest_of(cache[v]));
    }
    largest = warp_max(largest);
    if (threadIdx.x % 32 == 0) maxima[threadIdx.x / 32] = largest;
    __syncthreads();
    for (int w = 0; w < kWarps; ++w) largest = fmaxf(largest, maxima[w]);
    float sum = 0.0f;
    for (int v = threadIdx.x; v < row.vectors(); v += kThreads) sum += exponentials_of(cache[v], largest);
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = 0.0f;
    for (int w = 0; w < kWarps; ++w) sum += sums[w];
    const float factor = 1.0f / sum;
    for (int v = threadIdx.x; v < row.vectors(); v += kThreads) row.store(v, cache[v], largest, factor);
  }
}

// columns > 16384; blockIdx.x is the rank in the cluster
extern "C" __global__ void __cluster_dims__(kRanks, 1, 1) __launch_bounds__(kThreads)
    in_a_cluster(const T* __restrict__ x, T* __restrict__ y, long long rows, int columns) {
  extern __shared__ uint4 dynamic_shared[];  // this block's vectors of the row
  __shared__ Partial of_warps[kWarps];
  __shared__ Partial of_ranks[kRanks];
  __shared__ Partial exchanged[2];  // by turns: others may still read the row before
  cg::cluster_group cluster = cg::this_cluster();
  const int rank = static_cast<int>(cluster.block_rank());
  int parity = 0;
  for (long long i = blockIdx.y; i < rows; i += gridDim.y, parity ^= 1) {
    const Row row(x, y, i, columns);
    const int each = ((columns + 7) / 8 + kRanks - 1) / kRanks;
    const int first = rank * each;
    const int last = min(first + each, row.vectors());
    Partial running = {-INFINITY, 0.0f};
    for (int v = first + threadIdx.x; v < last; v += kThreads) {
      const uint4 eight = row.load(v);
      dynamic_shared[v - first] = eight;
      add(running, eight);
    }
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) {
      const Partial other = {__shfl_xor_sync(kAll, running.largest, offset), __shfl_xor_sync(kAll, running.sum, offset)};
      running = merged(running, other);
    }
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = running;
    __syncthreads();
    if (threadIdx.x == 0) {
      Partial all = of_warps[0];
      for (int w = 1; w < kWarps; ++w) all = merged(all, of_warps[w]);
      exchanged[parity] = all;
    }
    cluster.sync();
    if (threadIdx.x < kRanks) of_ranks[threadIdx.x] = *cluster.map_shared_rank(&exchanged[parity], threadIdx.x);
    __syncthreads();
    Partial all = of_ranks[0];
#pragma unroll
    for (int r = 1; r < kRanks; ++r) all = merged(all, of_ranks[r]);
    const float factor = 1.0f / all.sum;
    for (int v = first + threadIdx.x; v < last; v += kThreads) row.store(v, dynamic_shared[v - first], all.largest, factor);
  }
  cluster.sync();  // its shared memory must outlast the others' reads
}
