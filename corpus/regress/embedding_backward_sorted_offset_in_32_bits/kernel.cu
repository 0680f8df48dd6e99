// Backward of rms_norm(table[ids]) * weight, bf16, without float atomics: tokens are sorted by id (counting sort), and
// chunks of 64 sorted tokens are reduced by segments. A segment that crosses the ends of a chunk leaves partial sums,
// which a fix-up adds up. The weight's gradient has one partial a chunk.
#include <cuda_bf16.h>

using bf16 = __nv_bfloat16;

constexpr int kChunk = 64;

__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

// One warp a token, grid-stride: scale and slope; its rank among the tokens of equal id.
extern "C" __global__ void __launch_bounds__(256)
token_stats(const bf16* __restrict__ grad_out, const long long* __restrict__ ids, const bf16* __restrict__ table,
            const bf16* __restrict__ weight, float eps, float* scale, float* slope, int* counts, int* rank,
            long long tokens, long long hidden) {
  const int lane = threadIdx.x;
  const long long stride = static_cast<long long>(gridDim.x) * blockDim.y;
  for (long long token = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y; token < tokens; token += stride) {
    const long long id = ids[token];
    const bf16* g = grad_out + token * hidden;
    const bf16* x = table + id * hidden;
    float squares = 0.0f, dot = 0.0f;
    if (hidden % 8 == 0) {
      for (long long h = lane * 8; h < hidden; h += 256) {
        const uint4 xr = *reinterpret_cast<const uint4*>(x + h);
        const uint4 gr = *reinterpret_cast<const uint4*>(g + h);
        const uint4 wr = *reinterpret_cast<const uint4*>(weight + h);
        const __nv_bfloat162* xp = reinterpret_cast<const __nv_bfloat162*>(&xr);
        const __nv_bfloat162* gp = reinterpret_cast<const __nv_bfloat162*>(&gr);
        const __nv_bfloat162* wp = reinterpret_cast<const __nv_bfloat162*>(&wr);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float2 xf = __bfloat1622float2(xp[i]), gf = __bfloat1622float2(gp[i]), wf = __bfloat1622float2(wp[i]);
          squares += xf.x * xf.x;
          squares += xf.y * xf.y;
          dot += gf.x * wf.x * xf.x;
          dot += gf.y * wf.y * xf.y;
        }
      }
    } else {
      for (long long h = lane; h < hidden; h += 32) {
        const float xf = __bfloat162float(x[h]);
        squares += xf * xf;
        dot += __bfloat162float(g[h]) * __bfloat162float(weight[h]) * xf;
      }
    }
    squares = warp_sum(squares);
    dot = warp_sum(dot);
    if (lane == 0) {
      const float s = rsqrtf(squares / static_cast<float>(hidden) + eps);
      scale[token] = s;
      slope[token] = s * s * (dot / static_cast<float>(hidden));
      rank[token] = atomicAdd(&counts[id], 1);
    }
  }
}

// One block: exclusive scan of the counts.
extern "C" __global__ void __launch_bounds__(1024) scan_counts(const int* __restrict__ counts, int* offsets, int vocab) {
  __shared__ int sums[1024];
  const int per = (vocab + 1023) / 1024;
  const int first = threadIdx.x * per;
  const int end = min(first + per, vocab);
  int sum = 0;
  for (int i = first; i < end; ++i) sum += counts[i];
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (int offset = 1; offset < 1024; offset *= 2) {
    const int left = threadIdx.x >= offset ? sums[threadIdx.x - offset] : 0;
    __syncthreads();
    sums[threadIdx.x] += left;
    __syncthreads();
  }
  int before = sums[threadIdx.x] - sum;
  for (int i = first; i < end; ++i) {
    offsets[i] = before;
    before += counts[i];
  }
}

extern "C" __global__ void sort_tokens(const long long* __restrict__ ids, const int* __restrict__ offsets,
                                       const int* __restrict__ rank, int* order, int tokens) {
  const int token = blockIdx.x * blockDim.x + threadIdx.x;
  if (token < tokens) order[offsets[ids[token]] + rank[token]] = token;
}

// Block (chunk, slab of 256 columns): walks its sorted tokens, one column a thread.
extern "C" __global__ void __launch_bounds__(256)
reduce_chunks(const bf16* __restrict__ grad_out, const long long* __restrict__ ids, const bf16* __restrict__ table,
              const bf16* __restrict__ weight, const float* __restrict__ scale, const float* __restrict__ slope,
              const int* __restrict__ counts, const int* __restrict__ offsets, const int* __restrict__ order, float* head,
              float* tail, float* weight_part, bf16* grad_table, int tokens, long long hidden) {
  __shared__ int s_token[kChunk];
  __shared__ int s_id[kChunk];
  __shared__ float s_scale[kChunk], s_slope[kChunk];
  const long long chunk = blockIdx.x;
  const int start = static_cast<int>(chunk) * kChunk;
  const int count = min(kChunk, tokens - start);
  if (threadIdx.x < count) {
    const int token = order[start + threadIdx.x];
    s_token[threadIdx.x] = token;
    s_id[threadIdx.x] = static_cast<int>(ids[token]);
    s_scale[threadIdx.x] = scale[token];
    s_slope[threadIdx.x] = slope[token];
  }
  __syncthreads();
  const long long h = static_cast<long long>(blockIdx.y) * 256 + threadIdx.x;
  if (h >= hidden) return;
  const float w = __bfloat162float(weight[h]);
  float weight_sum = 0.0f, sum = 0.0f, x = 0.0f;
  int current = -1;
  for (int i = 0; i < count; ++i) {
    const int id = s_id[i];
    if (id != current) {
      current = id;
      x = __bfloat162float(table[id * hidden + h]);
      sum = 0.0f;
    }
    const float g = __bfloat162float(grad_out[static_cast<unsigned>(s_token[i]) * static_cast<unsigned>(hidden) + static_cast<unsigned>(h)]);
    const float s = s_scale[i];
    weight_sum += g * x * s;
    sum += s * (g * w - x * s_slope[i]);
    if (i + 1 < count && s_id[i + 1] == id) continue;
    // The segment ends here, or the chunk does.
    const int first = offsets[id], end = first + counts[id];
    if (first < start)
      head[chunk * hidden + h] = sum;
    else if (end > start + count)
      tail[chunk * hidden + h] = sum;
    else
      grad_table[id * hidden + h] = __float2bfloat16(sum);
  }
  weight_part[chunk * hidden + h] = weight_sum;
}

// Block (chunk, slab): a segment that begins in this chunk and goes on beyond it.
extern "C" __global__ void __launch_bounds__(256)
fix_up(const long long* __restrict__ ids, const int* __restrict__ counts, const int* __restrict__ offsets,
       const int* __restrict__ order, const float* __restrict__ head, const float* __restrict__ tail, bf16* grad_table,
       int tokens, long long hidden) {
  const long long chunk = blockIdx.x;
  const int start = static_cast<int>(chunk) * kChunk;
  const int count = min(kChunk, tokens - start);
  const long long id = ids[order[start + count - 1]];
  const int first = offsets[id], end = first + counts[id];
  if (first < start || end <= start + count) return;
  const long long h = static_cast<long long>(blockIdx.y) * 256 + threadIdx.x;
  if (h >= hidden) return;
  float sum = tail[chunk * hidden + h];
  for (long long c = chunk + 1; c * kChunk < end; ++c) sum += head[c * hidden + h];
  grad_table[id * hidden + h] = __float2bfloat16(sum);
}

// One warp a row of the table, grid-stride: rows that no token names.
extern "C" __global__ void __launch_bounds__(256) clear_rows(const int* __restrict__ counts, bf16* grad_table,
                                                             long long vocab, long long hidden) {
  const long long stride = static_cast<long long>(gridDim.x) * blockDim.y;
  for (long long row = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y; row < vocab; row += stride) {
    if (counts[row] != 0) continue;
    bf16* out = grad_table + row * hidden;
    if (hidden % 8 == 0)
      for (long long h = threadIdx.x * 8; h < hidden; h += 256) *reinterpret_cast<uint4*>(out + h) = make_uint4(0, 0, 0, 0);
    else
      for (long long h = threadIdx.x; h < hidden; h += 32) out[h] = __float2bfloat16(0.0f);
  }
}

// 32 columns a block, 16 threads share a column's partial sums: in turns where they are few, in stretches where many.
extern "C" __global__ void __launch_bounds__(512) reduce_weight(const float* __restrict__ weight_part, bf16* grad_weight,
                                                                long long tokens, long long hidden) {
  __shared__ float sums[16][33];
  const long long chunks = (tokens + kChunk - 1) / kChunk;
  const long long h = static_cast<long long>(blockIdx.x) * 32 + threadIdx.x;
  float sum = 0.0f;
  if (h < hidden) {
    if (chunks <= 256) {
      for (long long c = threadIdx.y; c < chunks; c += 16) sum += weight_part[c * hidden + h];
    } else {
      const long long per = (chunks + 15) / 16;
      const long long end = min((threadIdx.y + 1) * per, chunks);
      for (long long c = threadIdx.y * per; c < end; ++c) sum += weight_part[c * hidden + h];
    }
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y == 0 && h < hidden) {
    float total = 0.0f;
    for (int i = 0; i < 16; ++i) total += sums[i][threadIdx.x];
    grad_weight[h] = __float2bfloat16(total);
  }
}
