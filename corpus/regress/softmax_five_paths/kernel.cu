// Softmax of each row in bf16. Rows of up to 1024 take a warp each, rows of up to 16384 a block each, longer ones are
// split into parts of 8192 columns: statistics of every part first, then the output.
#include <cuda_bf16.h>

using T = __nv_bfloat16;
using i64 = long long;

constexpr unsigned kAll = 0xffffffffu;
constexpr int kPart = 8192;

__device__ __forceinline__ float minus_infinity() { return __int_as_float(0xff800000); }

__device__ __forceinline__ float warp_max(float v) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) v = fmaxf(v, __shfl_xor_sync(kAll, v, offset));
  return v;
}

__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) v += __shfl_xor_sync(kAll, v, offset);
  return v;
}

template <int kWarps>
__device__ __forceinline__ float block_max(float v, float* shared) {
  v = warp_max(v);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = v;
  __syncthreads();
  v = shared[0];
#pragma unroll
  for (int i = 1; i < kWarps; ++i) v = fmaxf(v, shared[i]);
  __syncthreads();
  return v;
}

template <int kWarps>
__device__ __forceinline__ float block_sum(float v, float* shared) {
  v = warp_sum(v);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = v;
  __syncthreads();
  v = 0.0f;
#pragma unroll
  for (int i = 0; i < kWarps; ++i) v += shared[i];
  __syncthreads();
  return v;
}

__device__ __forceinline__ bool aligned(const void* p) { return (reinterpret_cast<unsigned long long>(p) & 15) == 0; }

__device__ __forceinline__ void unpack(const uint4& bits, float* f) {
  const unsigned word[4] = {bits.x, bits.y, bits.z, bits.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    f[2 * i] = __uint_as_float(word[i] << 16);
    f[2 * i + 1] = __uint_as_float(word[i] & 0xffff0000u);
  }
}

__device__ __forceinline__ unsigned pack2(float a, float b) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(a, b);
  return *reinterpret_cast<const unsigned*>(&pair);
}

__device__ __forceinline__ uint4 pack(const float* f) {
  return make_uint4(pack2(f[0], f[1]), pack2(f[2], f[3]), pack2(f[4], f[5]), pack2(f[6], f[7]));
}

// kThreads threads share `count` elements, 8 * kVectors each; -infinity past the end.
template <int kThreads, int kVectors>
__device__ __forceinline__ void fetch(const T* from, int count, int thread, uint4 (&bits)[kVectors]) {
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const int i = v * kThreads + thread;
    bits[v] = make_uint4(0xff80ff80u, 0xff80ff80u, 0xff80ff80u, 0xff80ff80u);
    if (i * 8 < count) bits[v] = reinterpret_cast<const uint4*>(from)[i];
  }
}

template <int kThreads, int kVectors>
__device__ __forceinline__ void fetch_scalars(const T* from, int count, int thread, float (&f)[8 * kVectors]) {
#pragma unroll
  for (int e = 0; e < 8 * kVectors; ++e) {
    const int i = e * kThreads + thread;
    f[e] = i < count ? __bfloat162float(from[i]) : minus_infinity();
  }
}

template <int kThreads, int kVectors>
__device__ __forceinline__ void load(const T* from, int count, int thread, bool vectors, float (&f)[8 * kVectors]) {
  if (vectors) {
    uint4 bits[kVectors];
    fetch<kThreads, kVectors>(from, count, thread, bits);
#pragma unroll
    for (int v = 0; v < kVectors; ++v) unpack(bits[v], f + 8 * v);
  } else {
    fetch_scalars<kThreads, kVectors>(from, count, thread, f);
  }
}

template <int kThreads, int kVectors>
__device__ __forceinline__ void store(T* to, int count, int thread, bool vectors, const float (&f)[8 * kVectors]) {
  if (vectors) {
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      const int i = v * kThreads + thread;
      if (i * 8 < count) reinterpret_cast<uint4*>(to)[i] = pack(f + 8 * v);
    }
  } else {
#pragma unroll
    for (int e = 0; e < 8 * kVectors; ++e) {
      const int i = e * kThreads + thread;
      if (i < count) to[i] = __float2bfloat16(f[e]);
    }
  }
}

template <int kVectors>
__device__ __forceinline__ void normalise_in_warp(float (&f)[8 * kVectors]) {
  float largest = minus_infinity();
#pragma unroll
  for (int e = 0; e < 8 * kVectors; ++e) largest = fmaxf(largest, f[e]);
  largest = warp_max(largest);
  float sum = 0.0f;
#pragma unroll
  for (int e = 0; e < 8 * kVectors; ++e) {
    f[e] = expf(f[e] - largest);
    sum += f[e];
  }
  const float scale = 1.0f / warp_sum(sum);
#pragma unroll
  for (int e = 0; e < 8 * kVectors; ++e) f[e] *= scale;
}

// A warp a row, turns of the whole grid. Narrow rows are fetched two turns ahead, the others one.
template <int kVectors>
__device__ __forceinline__ void rows_by_warps(const T* x, T* y, int rows, int columns) {
  const int lane = threadIdx.x % 32;
  const bool vectors = columns % 8 == 0 && aligned(x) && aligned(y);
  const i64 stride = static_cast<i64>(gridDim.x) * 8;
  i64 row = static_cast<i64>(blockIdx.x) * 8 + threadIdx.x / 32;
  float f[8 * kVectors];
  if (!vectors) {
    for (; row < rows; row += stride) {
      fetch_scalars<32, kVectors>(x + row * columns, columns, lane, f);
      normalise_in_warp<kVectors>(f);
      store<32, kVectors>(y + row * columns, columns, lane, false, f);
    }
    return;
  }
  uint4 now[kVectors], next[kVectors], later[kVectors];
  if (row < rows) fetch<32, kVectors>(x + row * columns, columns, lane, next);
  if (kVectors == 1 && row + stride < rows) fetch<32, kVectors>(x + (row + stride) * columns, columns, lane, later);
  for (; row < rows; row += stride) {
#pragma unroll
    for (int v = 0; v < kVectors; ++v) now[v] = next[v];
    if (kVectors == 1) {
#pragma unroll
      for (int v = 0; v < kVectors; ++v) next[v] = later[v];
      if (row + 2 * stride < rows)
        fetch<32, kVectors>(x + (row + 2 * stride) * columns, columns, lane, later);
    } else if (row + stride < rows) {
      fetch<32, kVectors>(x + (row + stride) * columns, columns, lane, next);
    }
#pragma unroll
    for (int v = 0; v < kVectors; ++v) unpack(now[v], f + 8 * v);
    normalise_in_warp<kVectors>(f);
    store<32, kVectors>(y + row * columns, columns, lane, true, f);
  }
}

extern "C" __global__ void __launch_bounds__(256) softmax_narrow(const T* x, T* y, int rows, int columns) {
  rows_by_warps<1>(x, y, rows, columns);
}

extern "C" __global__ void __launch_bounds__(256) softmax_warp(const T* x, T* y, int rows, int columns) {
  rows_by_warps<4>(x, y, rows, columns);
}

// A block a row of up to 16384, kept in registers.
extern "C" __global__ void __launch_bounds__(512) softmax_block(const T* x, T* y, int rows, int columns) {
  __shared__ float shared[16];
  const bool vectors = columns % 8 == 0 && aligned(x) && aligned(y);
  for (int row = blockIdx.x; row < rows; row += gridDim.x) {
    const i64 offset = static_cast<i64>(row) * columns;
    float f[32];
    load<512, 4>(x + static_cast<i64>(row) * columns, columns, threadIdx.x, vectors, f);
    float largest = minus_infinity();
#pragma unroll
    for (int e = 0; e < 32; ++e) largest = fmaxf(largest, f[e]);
    largest = block_max<16>(largest, shared);
    float sum = 0.0f;
#pragma unroll
    for (int e = 0; e < 32; ++e) {
      f[e] = expf(f[e] - largest);
      sum += f[e];
    }
    const float scale = 1.0f / block_sum<16>(sum, shared);
#pragma unroll
    for (int e = 0; e < 32; ++e) f[e] *= scale;
    store<512, 4>(y + offset, columns, threadIdx.x, vectors, f);
  }
}

// Maximum and sum of each part of each row.
extern "C" __global__ void __launch_bounds__(256) softmax_parts(const T* x, float* stats_of, int rows, int columns) {
  float2* stats = reinterpret_cast<float2*>(stats_of);
  __shared__ float shared[8];
  const bool vectors = columns % 8 == 0 && aligned(x);
  const int parts = (columns + kPart - 1) / kPart;
  const i64 tasks = static_cast<i64>(rows) * parts;
  const int part_step = gridDim.x % parts;
  const int row_step = gridDim.x / parts;
  int part = blockIdx.x % parts;
  i64 row = blockIdx.x / parts;
  for (i64 task = blockIdx.x; task < tasks; task += gridDim.x) {
    const int first = part * kPart;
    float f[32];
    load<256, 4>(x + row * columns + first, min(columns - first, kPart), threadIdx.x, vectors, f);
    float largest = minus_infinity();
#pragma unroll
    for (int e = 0; e < 32; ++e) largest = fmaxf(largest, f[e]);
    largest = block_max<8>(largest, shared);
    float sum = 0.0f;
    if (largest > minus_infinity()) {
#pragma unroll
      for (int e = 0; e < 32; ++e) sum += expf(f[e] - largest);
    }
    sum = block_sum<8>(sum, shared);
    if (threadIdx.x == 0) stats[row * parts + part] = make_float2(largest, sum);
    part += part_step;
    row += row_step;
    if (part >= parts) {
      part -= parts;
      ++row;
    }
  }
}

// Lane 0's result counts.
__device__ __forceinline__ float join_max(float v) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) v = fmaxf(v, __shfl_down_sync(kAll, v, offset));
  return __shfl_sync(kAll, v, 0);
}

__device__ __forceinline__ float join_sum(float v) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) v += __shfl_down_sync(kAll, v, offset);
  return __shfl_sync(kAll, v, 0);
}

// A part of a row a block; at most 32 parts, one a lane.
extern "C" __global__ void __launch_bounds__(256)
    softmax_scale(const T* x, const float* stats_of, T* y, int rows, int columns) {
  const float2* stats = reinterpret_cast<const float2*>(stats_of);
  const bool vectors = columns % 8 == 0 && aligned(x) && aligned(y);
  const int lane = threadIdx.x % 32;
  const int parts = gridDim.x;
  const int first = blockIdx.x * kPart;
  const int count = min(columns - first, kPart);
  for (int row = blockIdx.y; row < rows; row += gridDim.y) {
    float2 mine = make_float2(minus_infinity(), 0.0f);
    if (lane < parts) mine = stats[static_cast<i64>(row) * parts + lane];
    const float largest = join_max(mine.x);
    const float scale = 1.0f / join_sum(lane < parts ? mine.y * expf(mine.x - largest) : 0.0f);
    const i64 offset = static_cast<i64>(row) * columns + first;
    float f[32];
    load<256, 4>(x + offset, count, threadIdx.x, vectors, f);
#pragma unroll
    for (int e = 0; e < 32; ++e) f[e] = expf(f[e] - largest) * scale;
    store<256, 4>(y + offset, count, threadIdx.x, vectors, f);
  }
}
