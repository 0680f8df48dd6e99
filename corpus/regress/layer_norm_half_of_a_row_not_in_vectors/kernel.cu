// Layer norm in bf16. Narrow rows take a warp each, wide ones a block each with the next row's first vectors fetched
// ahead; a few wide rows (decode) are split into parts of 2048 whose means and squares are joined by Chan's formula.
#include <cuda_bf16.h>

using T = __nv_bfloat16;
using i64 = long long;

constexpr unsigned kAll = 0xffffffffu;
constexpr int kPart = 2048;
constexpr int kThreads = 256;

__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) v += __shfl_xor_sync(kAll, v, offset);
  return v;
}

__device__ __forceinline__ float block_sum(float v, float* shared) {
  v = warp_sum(v);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = v;
  __syncthreads();
  v = 0.0f;
#pragma unroll
  for (int i = 0; i < kThreads / 32; ++i) v += shared[i];
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

__device__ __forceinline__ uint4 vector_at(const T* from, int i) { return reinterpret_cast<const uint4*>(from)[i]; }

// Eight outputs from eight inputs.
__device__ __forceinline__ uint4 affine(const float* f, float mean, float scale, const uint4& weight, const uint4& bias) {
  float w[8], b[8], out[8];
  unpack(weight, w);
  unpack(bias, b);
#pragma unroll
  for (int e = 0; e < 8; ++e) out[e] = (f[e] - mean) * scale * w[e] + b[e];
  return pack(out);
}

__device__ __forceinline__ T affine(float f, float mean, float scale, T weight, T bias) {
  return __float2bfloat16((f - mean) * scale * __bfloat162float(weight) + __bfloat162float(bias));
}

// A warp a row of up to 1024.
extern "C" __global__ void __launch_bounds__(kThreads)
    layer_norm_warp(const T* x, const T* weight, const T* bias, float eps, T* y, int tokens, int hidden) {
  const int lane = threadIdx.x % 32;
  const bool vectors = hidden % 8 == 0 && aligned(x) && aligned(y) && aligned(weight) && aligned(bias);
  const i64 first = static_cast<i64>(blockIdx.x) * 8 + threadIdx.x / 32;
  for (i64 token = first; token < tokens; token += static_cast<i64>(gridDim.x) * 8) {
    const T* from = x + token * hidden;
    T* to = y + token * hidden;
    float f[32];
#pragma unroll
    for (int e = 0; e < 32; ++e) f[e] = 0.0f;
    if (vectors) {
#pragma unroll
      for (int v = 0; v < 4; ++v) {
        const int i = v * 32 + lane;
        if (i * 8 < hidden) unpack(vector_at(from, i), f + 8 * v);
      }
    } else {
#pragma unroll
      for (int e = 0; e < 32; ++e) {
        const int i = e * 32 + lane;
        if (i < hidden) f[e] = __bfloat162float(from[i]);
      }
    }
    float sum = 0.0f;
#pragma unroll
    for (int e = 0; e < 32; ++e) sum += f[e];
    const float mean = warp_sum(sum) / hidden;
    float squares = 0.0f;
#pragma unroll
    for (int e = 0; e < 32; ++e) {
      const int i = vectors ? (e / 8 * 32 + lane) * 8 : e * 32 + lane;
      if (i < hidden) squares += (f[e] - mean) * (f[e] - mean);
    }
    const float scale = rsqrtf(warp_sum(squares) / hidden + eps);
    if (vectors) {
#pragma unroll
      for (int v = 0; v < 4; ++v) {
        const int i = v * 32 + lane;
        if (i * 8 < hidden)
          reinterpret_cast<uint4*>(to)[i] = affine(f + 8 * v, mean, scale, vector_at(weight, i), vector_at(bias, i));
      }
    } else {
#pragma unroll
      for (int e = 0; e < 32; ++e) {
        const int i = e * 32 + lane;
        if (i < hidden) to[i] = affine(f[e], mean, scale, weight[i], bias[i]);
      }
    }
  }
}

// A block a row of up to 2048 * kVectors, turns of the whole grid. The first vectors of the next row are fetched while
// this one is worked on, the rest when their turn comes.
template <int kVectors>
__device__ __forceinline__ void rows_by_blocks(const T* x, const T* weight, const T* bias, float eps, T* y, int tokens,
                                               int hidden) {
  constexpr int kAhead = kVectors < 4 ? kVectors : 4;
  constexpr int kScalars = 32;
  __shared__ float shared[kThreads / 32];
  const int thread = threadIdx.x;
  const bool vectors = hidden % 8 == 0 && aligned(x) && aligned(y) && aligned(weight) && aligned(bias);
  uint4 ahead[kAhead], rest[kVectors - kAhead + 1];
#pragma unroll
  for (int v = 0; v < kAhead; ++v) ahead[v] = make_uint4(0, 0, 0, 0);
#pragma unroll
  for (int v = 0; v <= kVectors - kAhead; ++v) rest[v] = make_uint4(0, 0, 0, 0);
  i64 token = blockIdx.x;
  if (vectors) {
    const T* from = x + token * hidden;
#pragma unroll
    for (int v = 0; v < kAhead; ++v) {
      const int i = v * kThreads + thread;
      if (i * 8 < hidden) ahead[v] = vector_at(from, i);
    }
  }
  for (; token < tokens; token += gridDim.x) {
    const T* from = x + token * hidden;
    T* to = y + token * hidden;
    float f[8 * kVectors];
#pragma unroll
    for (int e = 0; e < 8 * kVectors; ++e) f[e] = 0.0f;
    if (vectors) {
#pragma unroll
      for (int v = kAhead; v < kVectors; ++v) {
        const int i = v * kThreads + thread;
        if (i * 8 < hidden) rest[v - kAhead] = vector_at(from, i);
      }
#pragma unroll
      for (int v = 0; v < kVectors; ++v) unpack(v < kAhead ? ahead[v < kAhead ? v : 0] : rest[v < kAhead ? 0 : v - kAhead], f + 8 * v);
      if (token + gridDim.x < tokens) {
        const T* next = from + static_cast<i64>(gridDim.x) * hidden;
#pragma unroll
        for (int v = 0; v < kAhead; ++v) {
          const int i = v * kThreads + thread;
          if (i * 8 < hidden) ahead[v] = vector_at(next, i);
        }
      }
    } else {
#pragma unroll
      for (int e = 0; e < kScalars; ++e) {
        const int i = e * kThreads + thread;
        if (i < hidden) f[e] = __bfloat162float(from[i]);
      }
    }
    float sum = 0.0f;
#pragma unroll
    for (int e = 0; e < 8 * kVectors; ++e) sum += f[e];
    const float mean = block_sum(sum, shared) / hidden;
    float squares = 0.0f;
#pragma unroll
    for (int e = 0; e < 8 * kVectors; ++e) {
      const int i = vectors ? (e / 8 * kThreads + thread) * 8 : e * kThreads + thread;
      if (i < hidden) squares += (f[e] - mean) * (f[e] - mean);
    }
    const float scale = rsqrtf(block_sum(squares, shared) / hidden + eps);
    if (vectors) {
#pragma unroll
      for (int v = 0; v < kVectors; ++v) {
        const int i = v * kThreads + thread;
        if (i * 8 < hidden)
          reinterpret_cast<uint4*>(to)[i] = affine(f + 8 * v, mean, scale, vector_at(weight, i), vector_at(bias, i));
      }
    } else {
#pragma unroll
      for (int e = 0; e < kScalars; ++e) {
        const int i = e * kThreads + thread;
        if (i < hidden) to[i] = affine(f[e], mean, scale, weight[i], bias[i]);
      }
    }
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    layer_norm_block_8192(const T* x, const T* weight, const T* bias, float eps, T* y, int tokens, int hidden) {
  rows_by_blocks<4>(x, weight, bias, eps, y, tokens, hidden);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    layer_norm_block_16384(const T* x, const T* weight, const T* bias, float eps, T* y, int tokens, int hidden) {
  rows_by_blocks<8>(x, weight, bias, eps, y, tokens, hidden);
}

// Eight elements of a part of a row; zero past the end.
__device__ __forceinline__ void load_part(const T* from, int count, bool vectors, float* f) {
#pragma unroll
  for (int e = 0; e < 8; ++e) f[e] = 0.0f;
  if (vectors) {
    if (static_cast<int>(threadIdx.x) * 8 < count) unpack(vector_at(from, threadIdx.x), f);
  } else {
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const int i = e * kThreads + threadIdx.x;
      if (i < count) f[e] = __bfloat162float(from[i]);
    }
  }
}

// Mean and squares of the deviations from it, of each part of each row.
extern "C" __global__ void __launch_bounds__(kThreads)
    layer_norm_parts(const T* x, float* stats_of, int tokens, int hidden) {
  float2* stats = reinterpret_cast<float2*>(stats_of);
  __shared__ float shared[kThreads / 32];
  const bool vectors = hidden % 8 == 0 && aligned(x);
  const int first = blockIdx.x * kPart;
  const int count = min(hidden - first, kPart);
  const i64 token = blockIdx.y;
  float f[8];
  load_part(x + token * hidden + first, count, vectors, f);
  float sum = 0.0f;
#pragma unroll
  for (int e = 0; e < 8; ++e) sum += f[e];
  const float mean = block_sum(sum, shared) / count;
  float squares = 0.0f;
#pragma unroll
  for (int e = 0; e < 8; ++e) {
    const int i = vectors ? static_cast<int>(threadIdx.x) * 8 : e * kThreads + static_cast<int>(threadIdx.x);
    if (i < count) squares += (f[e] - mean) * (f[e] - mean);
  }
  squares = block_sum(squares, shared);
  if (threadIdx.x == 0) stats[token * gridDim.x + blockIdx.x] = make_float2(mean, squares);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    layer_norm_apply(const T* x, const T* weight, const T* bias, float eps, const float* stats_of, T* y, int tokens,
                     int hidden) {
  const float2* stats = reinterpret_cast<const float2*>(stats_of);
  const bool vectors = hidden % 8 == 0 && aligned(x) && aligned(y) && aligned(weight) && aligned(bias);
  const int first = blockIdx.x * kPart;
  const int count = min(hidden - first, kPart);
  const i64 token = blockIdx.y;
  const float2* row = stats + token * gridDim.x;
  const int parts = (hidden + kPart - 1) / kPart;
  float mean = 0.0f;
  for (int p = 0; p < parts; ++p) mean += row[p].x * min(hidden - p * kPart, kPart);
  mean /= hidden;
  float squares = 0.0f;
  for (int p = 0; p < parts; ++p) {
    const float apart = row[p].x - mean;
    squares += row[p].y + apart * apart * min(hidden - p * kPart, kPart);
  }
  const float scale = rsqrtf(squares / hidden + eps);
  float f[8];
  load_part(x + token * hidden + first, count, vectors, f);
  T* to = y + token * hidden + first;
  if (vectors) {
    if (static_cast<int>(threadIdx.x) * 8 < count)
      reinterpret_cast<uint4*>(to)[threadIdx.x] =
          affine(f, mean, scale, vector_at(weight + first, threadIdx.x), vector_at(bias + first, threadIdx.x));
  } else {
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const int i = e * kThreads + threadIdx.x;
      if (i < count) to[i] = affine(f[e], mean, scale, weight[first + i], bias[first + i]);
    }
  }
}
