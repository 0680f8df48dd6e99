// Backward of RMS norm in bf16, x and grad_out read once: a block has a range of tokens, a thread the same columns in all
// of them, so that its part of grad_weight stays in registers until the end. Rows come in groups, for fewer barriers.
// A second launch adds up the parts of grad_weight.
#include <cuda_bf16.h>

using T = __nv_bfloat16;

namespace {

constexpr int kLongest = 4096;  // tokens of a block, where hidden <= 8192; above, rstd is read as it is needed

__device__ __forceinline__ void unpack(const uint4& bits, float (&to)[8]) {
  const unsigned words[4] = {bits.x, bits.y, bits.z, bits.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    to[2 * i] = __uint_as_float(words[i] << 16);
    to[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
  }
}

__device__ __forceinline__ unsigned pack(float low, float high) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const unsigned*>(&both);
}

// Eight elements from column h on, zeros past the end of the row.
__device__ __forceinline__ uint4 load8(const T* row, int h, int hidden, bool vectors) {
  uint4 bits = make_uint4(0, 0, 0, 0);
  if (vectors) {
    if (h < hidden) bits = __ldg(reinterpret_cast<const uint4*>(row + h));
  } else {
    const unsigned short* from = reinterpret_cast<const unsigned short*>(row);
    unsigned words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const unsigned low = h + 2 * i < hidden ? from[h + 2 * i] : 0, high = h + 2 * i + 1 < hidden ? from[h + 2 * i + 1] : 0;
      words[i] = low | high << 16;
    }
    bits = make_uint4(words[0], words[1], words[2], words[3]);
  }
  return bits;
}

__device__ __forceinline__ void store8(T* row, int h, int hidden, bool vectors, const float (&value)[8]) {
  if (vectors) {
    if (h < hidden)
      __stcs(reinterpret_cast<uint4*>(row + h),
             make_uint4(pack(value[0], value[1]), pack(value[2], value[3]), pack(value[4], value[5]), pack(value[6], value[7])));
  } else {
#pragma unroll
    for (int e = 0; e < 8; ++e)
      if (h + e < hidden) row[h + e] = __float2bfloat16_rn(value[e]);
  }
}

// What a thread keeps from row to row.
template <int kThreads, int kVectors>
struct Columns {
  uint4 weight[kVectors];
  float sum[kVectors][8];
};

// kRows rows from `token` on. `sums` is for this call alone until the one after the next.
template <int kThreads, int kVectors, int kRows>
__device__ __forceinline__ void rows(const T* __restrict__ x, const T* __restrict__ grad_out, T* __restrict__ grad_x, const float* rstd, float* sums,
                                     Columns<kThreads, kVectors>& columns, int token, int hidden, bool vectors) {
  constexpr int kWarps = kThreads / 32;
  const int thread = threadIdx.x;
  const long long base = static_cast<long long>(token) * hidden;
  uint4 held_x[kRows][kVectors], held_g[kRows][kVectors];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      const int h = (v * kThreads + thread) * 8;
      held_x[r][v] = load8(x + base + static_cast<long long>(r) * hidden, h, hidden, vectors);
      held_g[r][v] = load8(grad_out + base + static_cast<long long>(r) * hidden, h, hidden, vectors);
    }
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const float scale = rstd[r];
    float dot = 0.0f;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      float value[8], gradient[8], weight[8];
      unpack(held_x[r][v], value);
      unpack(held_g[r][v], gradient);
      unpack(columns.weight[v], weight);
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        dot += gradient[e] * weight[e] * value[e];
        columns.sum[v][e] += gradient[e] * value[e] * scale;
      }
    }
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) dot += __shfl_xor_sync(0xffffffffu, dot, distance);
    if (thread % 32 == 0) sums[r * kWarps + thread / 32] = dot;
  }
  __syncthreads();
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    float dot = 0.0f;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) dot += sums[r * kWarps + w];
    const float scale = rstd[r];
    const float slope = scale * scale * (dot / static_cast<float>(hidden));
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      float value[8], gradient[8], weight[8];
      unpack(held_x[r][v], value);
      unpack(held_g[r][v], gradient);
      unpack(columns.weight[v], weight);
#pragma unroll
      for (int e = 0; e < 8; ++e) value[e] = scale * (gradient[e] * weight[e] - value[e] * slope);
      store8(grad_x + base + static_cast<long long>(r) * hidden, (v * kThreads + thread) * 8, hidden, vectors, value);
    }
  }
}

}  // namespace

// hidden <= kThreads * kVectors * 8. Row blockIdx.x of `part` gets the sum over this block's tokens.
template <int kThreads, int kVectors, int kRows>
__global__ void __launch_bounds__(kThreads) backward(const T* __restrict__ x, const T* __restrict__ weight, const T* __restrict__ grad_out,
                                                     const float* __restrict__ rstd, T* __restrict__ grad_x, float* __restrict__ part, int tokens,
                                                     int hidden) {
  __shared__ float sums[2][kRows * (kThreads / 32)];
  __shared__ float rstd_of[kVectors < 4 ? kLongest : 1];
  const int thread = threadIdx.x;
  const bool vectors = hidden % 8 == 0;
  const int begin = static_cast<int>(static_cast<long long>(tokens) * blockIdx.x / gridDim.x);
  const int end = static_cast<int>(static_cast<long long>(tokens) * (blockIdx.x + 1) / gridDim.x);
  const float* scales = rstd + begin;
  if (kVectors < 4) {
    if (thread < end - begin) rstd_of[thread] = rstd[begin + thread];
    __syncthreads();
    scales = rstd_of;
  }
  Columns<kThreads, kVectors> columns;
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    columns.weight[v] = load8(weight, (v * kThreads + thread) * 8, hidden, vectors);
#pragma unroll
    for (int e = 0; e < 8; ++e) columns.sum[v][e] = 0.0f;
  }
  int turn = 0, token = begin;
  for (; token + kRows <= end; token += kRows, turn ^= 1)
    rows<kThreads, kVectors, kRows>(x, grad_out, grad_x, scales + (token - begin), sums[turn], columns, token, hidden, vectors);
  for (; token < end; ++token, turn ^= 1)
    rows<kThreads, kVectors, 1>(x, grad_out, grad_x, scales + (token - begin), sums[turn], columns, token, hidden, vectors);
  float* to = part + static_cast<long long>(blockIdx.x) * hidden;
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const int h = (v * kThreads + thread) * 8;
    if (vectors) {
      if (h < hidden) {
        reinterpret_cast<float4*>(to + h)[0] = make_float4(columns.sum[v][0], columns.sum[v][1], columns.sum[v][2], columns.sum[v][3]);
        reinterpret_cast<float4*>(to + h)[1] = make_float4(columns.sum[v][4], columns.sum[v][5], columns.sum[v][6], columns.sum[v][7]);
      }
    } else {
#pragma unroll
      for (int e = 0; e < 8; ++e)
        if (h + e < hidden) to[h + e] = columns.sum[v][e];
    }
  }
}

#define BACKWARD(A, B, C) template __global__ void backward<A, B, C>(const T*, const T*, const T*, const float*, T*, float*, int, int);
BACKWARD(128, 1, 4)
BACKWARD(256, 1, 4)
BACKWARD(512, 1, 4)
BACKWARD(512, 2, 2)
BACKWARD(512, 4, 1)
#undef BACKWARD

// Block (32, 32): 32 columns, whose parts 32 threads each share.
extern "C" __global__ void __launch_bounds__(1024) add_parts(const float* __restrict__ part, T* __restrict__ grad_weight, int tokens, int hidden) {
  __shared__ float sums[32][33];
  const int h = blockIdx.x * 32 + threadIdx.x;
  const int parts = min(tokens, hidden <= 2048 ? 1056 : hidden <= 8192 ? 264 : 132);
  float sum = 0.0f;
  if (h < hidden)
    for (int p = threadIdx.y; p < parts; p += 32) sum += part[static_cast<long long>(p) * hidden + h];
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  sum = sums[threadIdx.x][threadIdx.y];
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, distance);
  const int column = blockIdx.x * 32 + threadIdx.y;
  if (threadIdx.x == 0 && column < hidden) grad_weight[column] = __float2bfloat16_rn(sum);
}
