// Flash attention for prefill and decode: blocks take (head, 16 queries, stretch of keys) in turns. Few queries: keys are
// split in stretches of 2048, and a second kernel combines what was made of them.
#include <cuda_bf16.h>
#include <cuda_pipeline.h>

using T = __nv_bfloat16;

constexpr int kQueries = 16;
constexpr int kTile = 16;
constexpr int kStride = 264;
constexpr int kStages = 3;
constexpr int kThreads = 128;
constexpr int kSplitKeys = 2048;
constexpr int kFewQueries = 64;
constexpr unsigned kAll = 0xffffffffu;

struct Stage {
  T k[kTile][kStride];
  T v[kTile][kStride];
};

struct Pool {
  Stage stage[kStages];
  T q[kQueries][kStride];
};

__device__ __forceinline__ void load_tile(T (*to)[kStride], const T* __restrict__ from, int base,
                                          int end, int dim, int padded) {
  const int thread = threadIdx.x;
  if (dim % 8 == 0) {
    const int chunks = dim / 8;
    for (int i = thread; i < kTile * chunks; i += kThreads) {
      const int r = i / chunks, c = i % chunks * 8;
      const bool valid = base + r < end;
      const T* source = valid ? from + static_cast<long long>(base + r) * dim + c : from;
      __pipeline_memcpy_async(&to[r][c], source, 16, valid ? 0 : 16);
    }
  } else {
    for (int i = thread; i < kTile * padded; i += kThreads) {
      const int r = i / padded, c = i % padded;
      const bool valid = base + r < end && c < dim;
      to[r][c] = valid ? from[static_cast<long long>(base + r) * dim + c] : T(0.0f);
    }
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    attention(const T* __restrict__ q, const T* __restrict__ k, const T* __restrict__ v,
              float scale, float softcap, int causal, float* __restrict__ split_max,
              float* __restrict__ split_sum, float* __restrict__ split_out, T* __restrict__ o,
              long long heads, int queries, int keys, int dim) {
  extern __shared__ __align__(16) unsigned char memory[];
  Pool& pool = *reinterpret_cast<Pool*>(memory);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int key = lane % kTile, side = lane / kTile;
  const int padded = (dim + 3) / 4 * 4;
  const int half = padded / 2;
  const int query_blocks = (queries + kQueries - 1) / kQueries;
  const int splits = queries <= kFewQueries ? (keys + kSplitKeys - 1) / kSplitKeys : 1;
  const long long items = heads * query_blocks * splits;
  long long held = -1;

  for (long long item = blockIdx.x; item < items; item += gridDim.x) {
    const long long rest = item / splits;
    const int split = static_cast<int>(item - rest * splits);
    const int query_block = static_cast<int>(rest % query_blocks);
    const long long head = rest / query_blocks;
    const int first_query = query_block * kQueries;
    const int last_query = min(first_query + kQueries, queries) - 1;
    const int most = causal ? keys - queries + last_query + 1 : keys;
    const int begin = split * kSplitKeys;
    const int end = splits > 1 ? min(begin + kSplitKeys, most) : most;
    const int tiles = end > begin ? (end - begin + kTile - 1) / kTile : 0;
    const bool ragged = causal || split + 1 == splits;
    const T* head_k = k + head * keys * dim;
    const T* head_v = v + head * keys * dim;

    __syncthreads();  // the previous turn has read all it needs
    if (rest != held) {
      const T* from = q + head * queries * dim;
      for (int i = threadIdx.x; i < kQueries * padded; i += kThreads) {
        const int r = i / padded, c = i % padded;
        const long long row = min(first_query + r, queries - 1);
        pool.q[r][c] = c < dim ? from[row * dim + c] : T(0.0f);
      }
      held = rest;
    }

    float largest[4], sum[4], out[4][8];
    int visible[4];
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      largest[r] = -INFINITY;
      sum[r] = 0.0f;
      const int row = min(first_query + warp * 4 + r, queries - 1);
      visible[r] = causal ? keys - queries + row + 1 : keys;
#pragma unroll
      for (int i = 0; i < 8; ++i) out[r][i] = 0.0f;
    }

#pragma unroll
    for (int s = 0; s < kStages - 1; ++s) {
      if (s < tiles) {
        load_tile(pool.stage[s].k, head_k, begin + s * kTile, end, dim, padded);
        load_tile(pool.stage[s].v, head_v, begin + s * kTile, end, dim, padded);
      }
      __pipeline_commit();
    }

    for (int t = 0; t < tiles; ++t) {
      __pipeline_wait_prior(kStages - 2);
      __syncthreads();
      const int next = t + kStages - 1;
      if (next < tiles) {
        Stage& to = pool.stage[next % kStages];
        load_tile(to.k, head_k, begin + next * kTile, end, dim, padded);
        load_tile(to.v, head_v, begin + next * kTile, end, dim, padded);
      }
      __pipeline_commit();

      const Stage& at = pool.stage[t % kStages];
      const int base = begin + t * kTile;
      float dot[4] = {0.0f, 0.0f, 0.0f, 0.0f};
      for (int c = side * half; c < (side + 1) * half; c += 2) {
        const float2 x = __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(&at.k[key][c]));
#pragma unroll
        for (int r = 0; r < 4; ++r) {
          const float2 y = __bfloat1622float2(
              *reinterpret_cast<const __nv_bfloat162*>(&pool.q[warp * 4 + r][c]));
          dot[r] += x.x * y.x;
          dot[r] += x.y * y.y;
        }
      }

      float p[4];
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        float score = (dot[r] + __shfl_xor_sync(kAll, dot[r], kTile)) * scale;
        if (softcap > 0.0f) score = softcap * tanhf(score / softcap);
        if (ragged && base + key >= visible[r]) score = -INFINITY;
        float next_max = score;
#pragma unroll
        for (int offset = kTile / 2; offset > 0; offset /= 2)
          next_max = fmaxf(next_max, __shfl_xor_sync(kAll, next_max, offset));
        next_max = fmaxf(next_max, largest[r]);
        if (next_max == -INFINITY) {  // none of the keys so far is visible
          p[r] = 0.0f;
          continue;
        }
        const float factor = expf(largest[r] - next_max);
        p[r] = expf(score - next_max);
        sum[r] = sum[r] * factor + p[r];
        largest[r] = next_max;
#pragma unroll
        for (int i = 0; i < 8; ++i) out[r][i] *= factor;
      }

      for (int j = 0; j < kTile; ++j) {
        float share[4];
#pragma unroll
        for (int r = 0; r < 4; ++r) share[r] = __shfl_sync(kAll, p[r], j);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int c = lane * 2 + i * 64;
          if (c < padded) {
            const float2 x =
                __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(&at.v[j][c]));
#pragma unroll
            for (int r = 0; r < 4; ++r) {
              out[r][2 * i] += share[r] * x.x;
              out[r][2 * i + 1] += share[r] * x.y;
            }
          }
        }
      }
    }

#pragma unroll
    for (int r = 0; r < 4; ++r) {
#pragma unroll
      for (int offset = kTile / 2; offset > 0; offset /= 2)
        sum[r] += __shfl_xor_sync(kAll, sum[r], offset);
      const int query = first_query + warp * 4 + r;
      if (query >= queries) continue;
      const long long row = head * queries + query;
      const long long slot = row * splits + split;
      if (splits > 1 && lane == 0) {
        split_max[slot] = largest[r];
        split_sum[slot] = sum[r];
      }
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const int c = lane * 2 + i / 2 * 64 + i % 2;
        if (c >= dim) continue;
        if (splits > 1)
          split_out[slot * dim + c] = out[r][i];
        else
          o[row * dim + c] = T(out[r][i] / sum[r]);
      }
    }
  }
}

// A warp a query.
extern "C" __global__ void combine(const float* __restrict__ split_max,
                                   const float* __restrict__ split_sum,
                                   const float* __restrict__ split_out, T* __restrict__ o,
                                   long long heads, int queries, int keys, int dim) {
  const int lane = threadIdx.x;
  const long long row = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (row >= heads * queries) return;
  const int splits = (keys + kSplitKeys - 1) / kSplitKeys;
  const float* row_max = split_max + row * splits;
  const float* row_sum = split_sum + row * splits;

  float largest = 0.0f;
  for (int s = lane; s < splits; s += 32) largest = fmaxf(largest, row_max[s]);
  for (int offset = 16; offset > 0; offset /= 2)
    largest = fmaxf(largest, __shfl_xor_sync(kAll, largest, offset));

  float sum = 0.0f;
  float out[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) out[i] = 0.0f;
  for (int s = 0; s < splits; ++s) {
    const float weight = expf(row_max[s] - largest);
    sum += row_sum[s] * weight;
    const float* from = split_out + (row * splits + s) * dim;
#pragma unroll
    for (int i = 0; i < 8; ++i)
      if (lane + 32 * i < dim) out[i] += from[lane + 32 * i] * weight;
  }
#pragma unroll
  for (int i = 0; i < 8; ++i)
    if (lane + 32 * i < dim) o[row * dim + lane + 32 * i] = T(out[i] / sum);
}
