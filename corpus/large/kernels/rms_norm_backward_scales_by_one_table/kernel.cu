// Backward pass of RMS norm for bf16, in two designs by the shape.
//
// backward_fused (hidden % 8 == 0, up to 8192): both gradients in one pass over the tensors. A block
// has consecutive tokens; each thread owns the same columns of all of them, so that the weight's
// gradient stays in registers until the end, when it goes to f32 sums by atomics. The next token's
// vectors are on their way while this one's are reduced. rstd comes through shared memory, 256 tokens
// at a time.
//
// backward_rows, backward_columns, weight_reduce (the rest): a warp a row for grad_x, and columns by
// up to 64 parts of the tokens for grad_weight, whose sums the last kernel adds in order.
#include <cuda_bf16.h>

using bf16 = __nv_bfloat16;

constexpr unsigned kAll = 0xffffffffu;

__device__ __forceinline__ void unpack8(const uint4& v, float (&f)[8]) {
  const unsigned u[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    f[2 * i] = __uint_as_float(u[i] << 16);
    f[2 * i + 1] = __uint_as_float(u[i] & 0xffff0000u);
  }
}

__device__ __forceinline__ unsigned pack2(float a, float b) {
  const unsigned low = __bfloat16_as_ushort(__float2bfloat16_rn(a));
  const unsigned high = __bfloat16_as_ushort(__float2bfloat16_rn(b));
  return low | (high << 16);
}

__device__ __forceinline__ uint4 pack8(const float (&f)[8]) {
  return make_uint4(pack2(f[0], f[1]), pack2(f[2], f[3]), pack2(f[4], f[5]), pack2(f[6], f[7]));
}

__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(kAll, value, offset);
  return value;
}

// --- one pass
constexpr int kTable = 256;

template <int kThreads, int kVectors>
__global__ void __launch_bounds__(kThreads)
backward_fused(const bf16* __restrict__ x, const bf16* __restrict__ weight,
               const bf16* __restrict__ grad_out, const float* __restrict__ rstd,
               bf16* __restrict__ grad_x, float* __restrict__ sums, long long tokens, int hidden) {
  constexpr int kWarps = kThreads / 32;
  __shared__ float table[kTable];
  __shared__ float parts[2][kWarps];
  const int tid = threadIdx.x;
  const int vectors = hidden >> 3;
  const long long begin = tokens * blockIdx.x / gridDim.x;
  const long long end = tokens * (blockIdx.x + 1LL) / gridDim.x;

  uint4 held_w[kVectors], next_x[kVectors], next_g[kVectors];
  float sum[kVectors][8];
  auto load = [&](long long token) {
    const uint4* row = reinterpret_cast<const uint4*>(x + token * hidden);
    const uint4* g = reinterpret_cast<const uint4*>(grad_out + token * hidden);
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
      const int j = tid + i * kThreads;
      if (j < vectors) {
        next_x[i] = row[j];
        next_g[i] = g[j];
      }
    }
  };
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    const int j = tid + i * kThreads;
    held_w[i] = next_x[i] = next_g[i] = make_uint4(0, 0, 0, 0);  // Columns past the end are zeros.
    if (j < vectors) held_w[i] = reinterpret_cast<const uint4*>(weight)[j];
#pragma unroll
    for (int c = 0; c < 8; ++c) sum[i][c] = 0.0f;
  }
  if (begin < end) load(begin);

  int turn = 0;
  {
    const int count = static_cast<int>(end - begin);
    for (int i = tid; i < min(count, kTable); i += kThreads) table[i] = rstd[begin + i];
    __syncthreads();
    for (int r = 0; r < count; ++r) {
      const long long token = begin + r;
      uint4 held_x[kVectors], held_g[kVectors];
      float dot = 0.0f;
#pragma unroll
      for (int i = 0; i < kVectors; ++i) {
        held_x[i] = next_x[i];
        held_g[i] = next_g[i];
        float xs[8], gs[8], ws[8];
        unpack8(held_x[i], xs);
        unpack8(held_g[i], gs);
        unpack8(held_w[i], ws);
#pragma unroll
        for (int c = 0; c < 8; ++c) dot += gs[c] * ws[c] * xs[c];
      }
      if (token + 1 < end) load(token + 1);
      dot = warp_sum(dot);
      if (tid % 32 == 0) parts[turn][tid / 32] = dot;
      __syncthreads();
      dot = 0.0f;
#pragma unroll
      for (int w = 0; w < kWarps; ++w) dot += parts[turn][w];
      turn ^= 1;  // These parts are written again past the next barrier, which all reach after reading.

      const float scale = table[r % kTable];
      const float slope = scale * scale * (dot / static_cast<float>(hidden));
      uint4* out = reinterpret_cast<uint4*>(grad_x + token * hidden);
#pragma unroll
      for (int i = 0; i < kVectors; ++i) {
        const int j = tid + i * kThreads;
        if (j < vectors) {
          float xs[8], gs[8], ws[8];
          unpack8(held_x[i], xs);
          unpack8(held_g[i], gs);
          unpack8(held_w[i], ws);
#pragma unroll
          for (int c = 0; c < 8; ++c) {
            sum[i][c] += gs[c] * xs[c] * scale;
            xs[c] = scale * (gs[c] * ws[c] - xs[c] * slope);
          }
          out[j] = pack8(xs);
        }
      }
    }
  }

#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    const int j = tid + i * kThreads;
    if (j < vectors) {
#pragma unroll
      for (int c = 0; c < 8; ++c) atomicAdd(sums + 8 * j + c, sum[i][c]);
    }
  }
}

extern "C" __global__ void __launch_bounds__(256)
weight_store(const float* __restrict__ sums, bf16* __restrict__ grad_weight, int hidden) {
  const int h = blockIdx.x * 256 + threadIdx.x;
  if (h < hidden) grad_weight[h] = __float2bfloat16_rn(sums[h]);
}

// --- any shape
extern "C" __global__ void __launch_bounds__(256)
backward_rows(const bf16* __restrict__ x, const bf16* __restrict__ weight,
              const bf16* __restrict__ grad_out, const float* __restrict__ rstd,
              bf16* __restrict__ grad_x, long long tokens, int hidden) {
  const int lane = threadIdx.x & 31;
  const long long step = static_cast<long long>(gridDim.x) * 8;
  for (long long token = static_cast<long long>(blockIdx.x) * 8 + (threadIdx.x >> 5); token < tokens;
       token += step) {
    const bf16* row = x + token * hidden;
    const bf16* g = grad_out + token * hidden;
    bf16* out = grad_x + token * hidden;
    const float scale = rstd[token];
    float dot = 0.0f;
    if (hidden % 8 == 0) {
      for (int h = lane * 8; h < hidden; h += 256) {
        float xs[8], gs[8], ws[8];
        unpack8(*reinterpret_cast<const uint4*>(row + h), xs);
        unpack8(*reinterpret_cast<const uint4*>(g + h), gs);
        unpack8(*reinterpret_cast<const uint4*>(weight + h), ws);
#pragma unroll
        for (int c = 0; c < 8; ++c) dot += gs[c] * ws[c] * xs[c];
      }
      const float slope = scale * scale * (warp_sum(dot) / static_cast<float>(hidden));
      for (int h = lane * 8; h < hidden; h += 256) {
        float xs[8], gs[8], ws[8];
        unpack8(*reinterpret_cast<const uint4*>(row + h), xs);
        unpack8(*reinterpret_cast<const uint4*>(g + h), gs);
        unpack8(*reinterpret_cast<const uint4*>(weight + h), ws);
#pragma unroll
        for (int c = 0; c < 8; ++c) xs[c] = scale * (gs[c] * ws[c] - xs[c] * slope);
        *reinterpret_cast<uint4*>(out + h) = pack8(xs);
      }
    } else {
      for (int h = lane; h < hidden; h += 32)
        dot += __bfloat162float(g[h]) * __bfloat162float(weight[h]) * __bfloat162float(row[h]);
      const float slope = scale * scale * (warp_sum(dot) / static_cast<float>(hidden));
      for (int h = lane; h < hidden; h += 32) {
        const float gradient = __bfloat162float(g[h]) * __bfloat162float(weight[h]);
        out[h] = __float2bfloat16_rn(scale * (gradient - __bfloat162float(row[h]) * slope));
      }
    }
  }
}

constexpr int kPartTokens = 8192;
constexpr int kMostParts = 64;

__device__ __forceinline__ int parts_of(long long tokens) {
  const long long parts = (tokens + kPartTokens - 1) / kPartTokens;
  return static_cast<int>(parts < kMostParts ? parts : kMostParts);
}

// Blocks of [32 columns, 8 tokens], a part of the tokens each.
extern "C" __global__ void __launch_bounds__(256)
backward_columns(const bf16* __restrict__ x, const bf16* __restrict__ grad_out,
                 const float* __restrict__ rstd, float* __restrict__ partial, long long tokens,
                 int hidden) {
  __shared__ float tile[8][32];
  const int h = blockIdx.x * 32 + threadIdx.x;
  const int parts = parts_of(tokens);
  const long long each = (tokens + parts - 1) / parts;
  const long long begin = blockIdx.y * each;
  const long long end = begin + each < tokens ? begin + each : tokens;
  float sum = 0.0f;
  if (h < hidden) {
#pragma unroll 4
    for (long long token = begin + threadIdx.y; token < end; token += 8) {
      const long long at = token * hidden + h;
      sum += __bfloat162float(grad_out[at]) * __bfloat162float(x[at]) * rstd[token];
    }
  }
  tile[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y == 0 && h < hidden) {
    for (int i = 1; i < 8; ++i) sum += tile[i][threadIdx.x];
    partial[static_cast<long long>(blockIdx.y) * hidden + h] = sum;
  }
}

extern "C" __global__ void __launch_bounds__(256)
weight_reduce(const float* __restrict__ partial, bf16* __restrict__ grad_weight, long long tokens,
              int hidden) {
  const int h = blockIdx.x * 256 + threadIdx.x;
  if (h >= hidden) return;
  const int parts = parts_of(tokens);
  float sum = 0.0f;
  for (int i = 0; i < parts; ++i) sum += partial[static_cast<long long>(i) * hidden + h];
  grad_weight[h] = __float2bfloat16_rn(sum);
}
