// Split-K flash attention: each warp takes one query and one chunk of 1024 keys, a second kernel joins the chunks.
#include <cuda_fp16.h>

constexpr unsigned kAll = 0xffffffffu;
constexpr int kChunk = 1024;
constexpr int kWarps = 4;
constexpr int kMostDim = 256;

__device__ __forceinline__ float lowest() { return __int_as_float(0xff800000); }

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

__device__ __forceinline__ float dot8(const uint4& packed, const float* q) {
  const __half2* pairs = reinterpret_cast<const __half2*>(&packed);
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 two = __half22float2(pairs[i]);
    sum = fmaf(two.x, q[2 * i], sum);
    sum = fmaf(two.y, q[2 * i + 1], sum);
  }
  return sum;
}

// kVector: rows are multiples of 16 bytes.
template <bool kVector>
__global__ void __launch_bounds__(32 * kWarps)
attention_part(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v,
               float scale, float softcap, int causal, float* __restrict__ stats, float* __restrict__ sums,
               long long heads, long long queries, long long keys, long long dim) {
  __shared__ float query[kWarps][kMostDim];
  const int lane = threadIdx.x;
  float* mine = query[threadIdx.y];
  const long long splits = (keys + kChunk - 1) / kChunk;
  const long long begin = static_cast<long long>(blockIdx.y) * kChunk;
  const long long step = static_cast<long long>(gridDim.x) * kWarps;
  for (long long row = static_cast<long long>(blockIdx.x) * kWarps + threadIdx.y; row < heads * queries; row += step) {
    const long long head = row / queries;
    const long long visible = causal ? keys - queries + row % queries + 1 : keys;
    if (visible <= begin) continue;  // This query sees none of the chunk: its place keeps its zeros.
    const long long end = visible < begin + kChunk ? visible : begin + kChunk;
    __syncwarp();
    for (int c = lane; c < dim; c += 32) mine[c] = __half2float(q[row * dim + c]);
    __syncwarp();

    float largest = lowest();
    float total = 0.0f;
    float out[kMostDim / 32];
#pragma unroll
    for (int i = 0; i < kMostDim / 32; ++i) out[i] = 0.0f;

    for (long long base = begin; base < end; base += 32) {
      const long long key = base + lane;
      float score = lowest();
      if (key < end) {
        const __half* from = k + (head * keys + key) * dim;
        float dot = 0.0f;
        if constexpr (kVector) {
          for (int c = 0; c < dim; c += 8) dot += dot8(*reinterpret_cast<const uint4*>(from + c), mine + c);
        } else {
          for (int c = 0; c < dim; ++c) dot = fmaf(__half2float(from[c]), mine[c], dot);
        }
        score = dot * scale;
        if (softcap > 0.0f) score = softcap * tanhf(score / softcap);
      }
      const float now = fmaxf(largest, warp_max(score));
      const float fade = expf(largest - now);
      const float p = expf(score - now);
      largest = now;
      total = total * fade + warp_sum(p);
#pragma unroll
      for (int i = 0; i < kMostDim / 32; ++i) out[i] *= fade;
      const int count = end - base < 32 ? static_cast<int>(end - base) : 32;
      for (int j = 0; j < count; ++j) {
        const float weight = __shfl_sync(kAll, p, j);
        const __half* value = v + (head * keys + base + j) * dim;
#pragma unroll
        for (int i = 0; i < kMostDim / 32; ++i) {
          const int c = lane + 32 * i;
          if (c < dim) out[i] = fmaf(weight, __half2float(value[c]), out[i]);
        }
      }
    }
    const long long place = row * splits + blockIdx.y;
    if (lane == 0) {
      stats[2 * place] = largest;
      stats[2 * place + 1] = total;
    }
#pragma unroll
    for (int i = 0; i < kMostDim / 32; ++i) {
      const int c = lane + 32 * i;
      if (c < dim) sums[place * dim + c] = out[i];
    }
  }
}

// One warp a query.
extern "C" __global__ void __launch_bounds__(32 * kWarps)
attention_join(const float* __restrict__ stats, const float* __restrict__ sums, __half* __restrict__ o,
               long long heads, long long queries, long long keys, long long dim) {
  const int lane = threadIdx.x;
  const long long splits = (keys + kChunk - 1) / kChunk;
  const long long step = static_cast<long long>(gridDim.x) * kWarps;
  for (long long row = static_cast<long long>(blockIdx.x) * kWarps + threadIdx.y; row < heads * queries; row += step) {
    const float* stat = stats + 2 * row * splits;
    float largest = lowest();
    // Empty chunks hold zeros: their sums add nothing below.
    for (long long s = 0; s < splits; ++s) largest = fmaxf(largest, stat[2 * s]);
    float total = 0.0f;
    float out[kMostDim / 32];
#pragma unroll
    for (int i = 0; i < kMostDim / 32; ++i) out[i] = 0.0f;
    for (long long s = 0; s < splits; ++s) {
      if (stat[2 * s + 1] == 0.0f) continue;
      const float weight = expf(stat[2 * s] - largest);
      total = fmaf(stat[2 * s + 1], weight, total);
      const float* part = sums + (row * splits + s) * dim;
#pragma unroll
      for (int i = 0; i < kMostDim / 32; ++i) {
        const int c = lane + 32 * i;
        if (c < dim) out[i] = fmaf(part[c], weight, out[i]);
      }
    }
#pragma unroll
    for (int i = 0; i < kMostDim / 32; ++i) {
      const int c = lane + 32 * i;
      if (c < dim) o[row * dim + c] = __float2half_rn(out[i] / total);
    }
  }
}
