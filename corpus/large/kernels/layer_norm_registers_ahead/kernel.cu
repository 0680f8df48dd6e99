// Layer norm in bf16. Rows of up to 1024: a warp each. Longer ones: persistent blocks that keep a row in registers and
// fetch the next one while they work on it.
#include <cuda_bf16.h>

namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

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

__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(0xffffffffu, value, distance);
  return value;
}

__device__ __forceinline__ float block_sum(float value, float* sums) {
  value = warp_sum(value);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = value;
  __syncthreads();
  float total = 0.0f;
#pragma unroll
  for (int i = 0; i < kWarps; ++i) total += sums[i];
  return total;
}

__device__ __forceinline__ uint4 normal(const uint4& bits, const uint4& weight, const uint4& bias, float mean, float scale) {
  float x[8], w[8], b[8];
  unpack(bits, x);
  unpack(weight, w);
  unpack(bias, b);
#pragma unroll
  for (int e = 0; e < 8; ++e) x[e] = (x[e] - mean) * scale * w[e] + b[e];
  return make_uint4(pack(x[0], x[1]), pack(x[2], x[3]), pack(x[4], x[5]), pack(x[6], x[7]));
}

}  // namespace

// hidden <= 1024: block (32, 8), a warp a row.
extern "C" __global__ void __launch_bounds__(256) narrow(const __nv_bfloat16* __restrict__ x, const __nv_bfloat16* __restrict__ weight,
                                                         const __nv_bfloat16* __restrict__ bias, float eps, __nv_bfloat16* __restrict__ y,
                                                         int tokens, int hidden) {
  const int token = blockIdx.x * 8 + threadIdx.y, lane = threadIdx.x;
  if (token >= tokens) return;
  const long long base = static_cast<long long>(token) * hidden;
  if (hidden % 8 == 0) {
    const int vectors = hidden / 8;
    const uint4* from = reinterpret_cast<const uint4*>(x + base);
    uint4 held[4];
    float sum = 0.0f;
#pragma unroll
    for (int v = 0; v < 4; ++v) {
      if (v * 32 + lane < vectors) {
        held[v] = __ldcs(from + v * 32 + lane);
        float value[8];
        unpack(held[v], value);
#pragma unroll
        for (int e = 0; e < 8; ++e) sum += value[e];
      }
    }
    const float mean = warp_sum(sum) / static_cast<float>(hidden);
    float squares = 0.0f;
#pragma unroll
    for (int v = 0; v < 4; ++v) {
      if (v * 32 + lane < vectors) {
        float value[8];
        unpack(held[v], value);
#pragma unroll
        for (int e = 0; e < 8; ++e) squares += (value[e] - mean) * (value[e] - mean);
      }
    }
    const float scale = rsqrtf(warp_sum(squares) / static_cast<float>(hidden) + eps);
    uint4* to = reinterpret_cast<uint4*>(y + base);
#pragma unroll
    for (int v = 0; v < 4; ++v) {
      const int i = v * 32 + lane;
      if (i < vectors)
        to[i] = normal(held[v], __ldg(reinterpret_cast<const uint4*>(weight) + i), __ldg(reinterpret_cast<const uint4*>(bias) + i), mean, scale);
    }
    return;
  }
  float sum = 0.0f;
  for (int h = lane; h < hidden; h += 32) sum += __bfloat162float(x[base + h]);
  const float mean = warp_sum(sum) / static_cast<float>(hidden);
  float squares = 0.0f;
  for (int h = lane; h < hidden; h += 32) {
    const float deviation = __bfloat162float(x[base + h]) - mean;
    squares += deviation * deviation;
  }
  const float scale = rsqrtf(warp_sum(squares) / static_cast<float>(hidden) + eps);
  for (int h = lane; h < hidden; h += 32)
    y[base + h] = __float2bfloat16_rn((__bfloat162float(x[base + h]) - mean) * scale * __bfloat162float(weight[h]) + __bfloat162float(bias[h]));
}

// 1024 < hidden <= kVectors * 2048: persistent blocks of 256.
template <int kVectors>
__global__ void __launch_bounds__(kThreads) wide(const __nv_bfloat16* __restrict__ x, const __nv_bfloat16* __restrict__ weight,
                                                 const __nv_bfloat16* __restrict__ bias, float eps, __nv_bfloat16* __restrict__ y, int tokens,
                                                 int hidden) {
  __shared__ float sums[2][kWarps];
  const int thread = threadIdx.x;
  const float count = static_cast<float>(hidden);
  if (hidden % 8 != 0) {
    for (int token = blockIdx.x; token < tokens; token += gridDim.x) {
      const long long base = static_cast<long long>(token) * hidden;
      const __nv_bfloat16* row = x + base;
      float sum = 0.0f;
      for (int h = thread; h < hidden; h += kThreads) sum += __bfloat162float(row[h]);
      const float mean = block_sum(sum, sums[0]) / count;
      float squares = 0.0f;
      for (int h = thread; h < hidden; h += kThreads) {
        const float deviation = __bfloat162float(row[h]) - mean;
        squares += deviation * deviation;
      }
      const float scale = rsqrtf(block_sum(squares, sums[1]) / count + eps);
      for (int h = thread; h < hidden; h += kThreads)
        y[base + h] = __float2bfloat16_rn((__bfloat162float(row[h]) - mean) * scale * __bfloat162float(weight[h]) + __bfloat162float(bias[h]));
    }
    return;
  }

  const int vectors = hidden / 8;
  const uint4* from = reinterpret_cast<const uint4*>(x);
  uint4* to = reinterpret_cast<uint4*>(y);
  uint4 held[kVectors], next[kVectors];
  const auto fetch = [&](int token) {
#pragma unroll
    for (int v = 0; v < kVectors; ++v)
      if (v * kThreads + thread < vectors) next[v] = __ldcs(from + static_cast<long long>(token) * vectors + v * kThreads + thread);
  };
  fetch(blockIdx.x);
  for (int token = blockIdx.x; token < tokens; token += gridDim.x) {
#pragma unroll
    for (int v = 0; v < kVectors; ++v) held[v] = next[v];
    const int ahead = token + gridDim.x;
    if (ahead < tokens) fetch(ahead);
    float sum = 0.0f;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      if (v * kThreads + thread < vectors) {
        float value[8];
        unpack(held[v], value);
#pragma unroll
        for (int e = 0; e < 8; ++e) sum += value[e];
      }
    }
    const float mean = block_sum(sum, sums[0]) / count;
    float squares = 0.0f;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      if (v * kThreads + thread < vectors) {
        float value[8];
        unpack(held[v], value);
#pragma unroll
        for (int e = 0; e < 8; ++e) squares += (value[e] - mean) * (value[e] - mean);
      }
    }
    const float scale = rsqrtf(block_sum(squares, sums[1]) / count + eps);
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      const int i = v * kThreads + thread;
      if (i < vectors)
        to[static_cast<long long>(token) * vectors + i] =
            normal(held[v], __ldg(reinterpret_cast<const uint4*>(weight) + i), __ldg(reinterpret_cast<const uint4*>(bias) + i), mean, scale);
    }
  }
}

template __global__ void wide<2>(const __nv_bfloat16*, const __nv_bfloat16*, const __nv_bfloat16*, float, __nv_bfloat16*, int, int);
template __global__ void wide<4>(const __nv_bfloat16*, const __nv_bfloat16*, const __nv_bfloat16*, float, __nv_bfloat16*, int, int);
template __global__ void wide<8>(const __nv_bfloat16*, const __nv_bfloat16*, const __nv_bfloat16*, float, __nv_bfloat16*, int, int);
