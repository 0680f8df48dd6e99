// Attention, bf16. Few queries against many keys: the keys are split among up to 32 blocks, whose results a second kernel joins.
// Otherwise a block takes 64 queries and goes over the keys twice with tensor cores: once for the largest score and the sum of each
// query, once for the probabilities and their product with v, which then never has to be rescaled.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;
using T = __nv_bfloat16;

constexpr int kThreads = 128, kWarps = kThreads / 32;
constexpr int kQueries = 64, kKeys = 64;                   // of a tile
constexpr int kStrideS = kKeys + 4, kStrideP = kKeys + 8;
constexpr int kSplits = 32, kSplitKeys = 512, kMostDim = 256;
constexpr unsigned kAll = 0xffffffffu;

__device__ __forceinline__ float cap(float dot, float scale, float softcap) {
  const float score = dot * scale;
  return softcap > 0.0f ? softcap * tanhf(score / softcap) : score;
}

// Rows first .. first + 63 of a matrix with `rows` rows; zeros past its end and past `dim`.
template <int kDim>
__device__ __forceinline__ void load_tile(T* to, const T* __restrict__ from, int first, int rows, int dim) {
  constexpr int kStride = kDim + 8;
  if (dim % 8 == 0) {
    for (int i = threadIdx.x; i < kQueries * (kDim / 8); i += kThreads) {
      const int row = i / (kDim / 8), column = i % (kDim / 8) * 8;
      uint4 bits = make_uint4(0u, 0u, 0u, 0u);
      if (first + row < rows && column < dim) bits = *reinterpret_cast<const uint4*>(from + static_cast<long long>(first + row) * dim + column);
      *reinterpret_cast<uint4*>(to + row * kStride + column) = bits;
    }
  } else {
    for (int i = threadIdx.x; i < kQueries * kDim; i += kThreads) {
      const int row = i / kDim, column = i % kDim;
      to[row * kStride + column] =
          first + row < rows && column < dim ? from[static_cast<long long>(first + row) * dim + column] : __float2bfloat16(0.0f);
    }
  }
}

// Scores of the warp's 16 queries and the tile's 64 keys.
template <int kDim>
__device__ __forceinline__ void score_tile(const T* queries, const T* keys, float* scores) {
  constexpr int kStride = kDim + 8;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[kKeys / 16];
#pragma unroll
  for (int j = 0; j < kKeys / 16; ++j) wmma::fill_fragment(sum[j], 0.0f);
#pragma unroll 4
  for (int c = 0; c < kDim; c += 16) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> left;
    wmma::load_matrix_sync(left, queries + c, kStride);
#pragma unroll
    for (int j = 0; j < kKeys / 16; ++j) {
      wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::col_major> right;
      wmma::load_matrix_sync(right, keys + j * 16 * kStride + c, kStride);
      wmma::mma_sync(sum[j], left, right, sum[j]);
    }
  }
#pragma unroll
  for (int j = 0; j < kKeys / 16; ++j) wmma::store_matrix_sync(scores + j * 16, sum[j], kStrideS, wmma::mem_row_major);
}

template <int kDim>
__global__ void __launch_bounds__(kThreads) tiles(const T* __restrict__ q, const T* __restrict__ k, const T* __restrict__ v, float scale,
                                                  float softcap, int causal, T* __restrict__ o, int queries, int keys, int dim) {
  constexpr int kStride = kDim + 8;
  extern __shared__ __align__(128) unsigned char memory[];
  __shared__ unsigned short limit[kQueries];      // keys that each query sees
  float* const scores = reinterpret_cast<float*>(memory);
  T* const probabilities = reinterpret_cast<T*>(scores + kQueries * kStrideS);
  T* const query_tile = probabilities + kQueries * kStrideP;
  T* const key_tile = query_tile + kQueries * kStride;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int query_tiles = (queries + kQueries - 1) / kQueries;
  const int head = blockIdx.x / query_tiles;
  const int q0 = (blockIdx.x - head * query_tiles) * kQueries;
  q += static_cast<long long>(head) * queries * dim;
  o += static_cast<long long>(head) * queries * dim;
  k += static_cast<long long>(head) * keys * dim;
  v += static_cast<long long>(head) * keys * dim;
  const int end = causal ? keys - queries + min(q0 + kQueries, queries) : keys;

  if (threadIdx.x < kQueries) limit[threadIdx.x] = causal ? min(keys, keys - queries + q0 + static_cast<int>(threadIdx.x) + 1) : keys;
  load_tile<kDim>(query_tile, q, q0, queries, dim);
  const T* const my_queries = query_tile + warp * 16 * kStride;
  float* const my_scores = scores + warp * 16 * kStrideS;
  T* const my_probabilities = probabilities + warp * 16 * kStrideP;
  const int row = lane / 2, half = lane % 2 * (kKeys / 2);      // two lanes a query

  float top = -INFINITY, sum = 0.0f;
  for (int k0 = 0; k0 < end; k0 += kKeys) {
    __syncthreads();
    load_tile<kDim>(key_tile, k, k0, keys, dim);
    __syncthreads();
    score_tile<kDim>(my_queries, key_tile, my_scores);
    __syncwarp();
    const int visible = limit[warp * 16 + row] - k0 - half;
    float most = top;
    for (int j = 0; j < kKeys / 2; ++j) {
      float& score = my_scores[row * kStrideS + half + j];
      score = j < visible ? cap(score, scale, softcap) : -INFINITY;
      most = fmaxf(most, score);
    }
    if (visible > 0) {
      sum *= expf(top - most);
      for (int j = 0; j < kKeys / 2; ++j) sum += j < visible ? expf(my_scores[row * kStrideS + half + j] - most) : 0.0f;
      top = most;
    }
    __syncwarp();
  }
  const float other_top = __shfl_xor_sync(kAll, top, 1), other_sum = __shfl_xor_sync(kAll, sum, 1);
  const float most = fmaxf(top, other_top);
  sum = (sum > 0.0f || sum != sum ? sum * expf(top - most) : 0.0f) +
        (other_sum > 0.0f || other_sum != other_sum ? other_sum * expf(other_top - most) : 0.0f);
  top = most;

  wmma::fragment<wmma::accumulator, 16, 16, 16, float> value[kDim / 16];
#pragma unroll
  for (int c = 0; c < kDim / 16; ++c) wmma::fill_fragment(value[c], 0.0f);
  for (int k0 = 0; k0 < end; k0 += kKeys) {
    __syncthreads();
    load_tile<kDim>(key_tile, k, k0, keys, dim);
    __syncthreads();
    score_tile<kDim>(my_queries, key_tile, my_scores);
    __syncthreads();      // all have read the keys: v takes their place
    load_tile<kDim>(key_tile, v, k0, keys, dim);
    const int visible = limit[warp * 16 + row] - k0 - half;
    for (int j = 0; j < kKeys / 2; ++j) {
      const float p = j < visible ? expf(cap(my_scores[row * kStrideS + half + j], scale, softcap) - top) : 0.0f;
      my_probabilities[row * kStrideP + half + j] = __float2bfloat16(p);
    }
    __syncthreads();
#pragma unroll
    for (int j = 0; j < kKeys; j += 16) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> left;
      wmma::load_matrix_sync(left, my_probabilities + j, kStrideP);
#pragma unroll
      for (int c = 0; c < kDim / 16; ++c) {
        wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::row_major> right;
        wmma::load_matrix_sync(right, key_tile + j * kStride + c * 16, kStride);
        wmma::mma_sync(value[c], left, right, value[c]);
      }
    }
  }
  const int query = q0 + warp * 16 + row;
#pragma unroll
  for (int c = 0; c < kDim / 16; ++c) {
    __syncwarp();
    wmma::store_matrix_sync(my_scores, value[c], kStrideS, wmma::mem_row_major);
    __syncwarp();
    for (int j = 0; j < 8; ++j) {
      const int column = c * 16 + lane % 2 * 8 + j;
      if (query < queries && column < dim)
        o[static_cast<long long>(query) * dim + column] = __float2bfloat16(my_scores[row * kStrideS + lane % 2 * 8 + j] / sum);
    }
  }
}

// A block a query and a stretch of keys; a warp takes every fourth key. A part is the largest score, the sum, and the values.
extern "C" __global__ void __launch_bounds__(kThreads) decode(const T* __restrict__ q, const T* __restrict__ k, const T* __restrict__ v,
                                                              float scale, float softcap, int causal, float* __restrict__ part,
                                                              int queries, int keys, int dim) {
  constexpr int kEach = kMostDim / 32;
  __shared__ float tops[kWarps], sums[kWarps], values[kWarps][kMostDim];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int row = blockIdx.y, split = blockIdx.x, splits = gridDim.x;
  const int head = row / queries;
  const int visible = causal ? keys - queries + row % queries + 1 : keys;
  const int stretch = (keys + splits - 1) / splits;
  const int first = split * stretch, end = min(visible, first + stretch);
  k += static_cast<long long>(head) * keys * dim;
  v += static_cast<long long>(head) * keys * dim;
  float query[kEach], value[kEach] = {};
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int c = lane + 32 * i;
    query[i] = c < dim ? __bfloat162float(q[static_cast<long long>(row) * dim + c]) : 0.0f;
  }
  float top = -INFINITY, sum = 0.0f;
  for (int j = first + warp; j < end; j += kWarps) {
    float dot = 0.0f;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int c = lane + 32 * i;
      if (c < dim) dot += query[i] * __bfloat162float(k[static_cast<long long>(j) * dim + c]);
    }
#pragma unroll
    for (int o = 16; o > 0; o >>= 1) dot += __shfl_xor_sync(kAll, dot, o);
    const float score = cap(dot, scale, softcap);
    const float most = fmaxf(top, score);
    const float before = expf(top - most), p = expf(score - most);
    sum = sum * before + p;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int c = lane + 32 * i;
      if (c < dim) value[i] = value[i] * before + p * __bfloat162float(v[static_cast<long long>(j) * dim + c]);
    }
    top = most;
  }
  if (lane == 0) {
    tops[warp] = top;
    sums[warp] = sum;
  }
#pragma unroll
  for (int i = 0; i < kEach; ++i) values[warp][lane + 32 * i] = value[i];
  __syncthreads();
  float most = tops[0];
#pragma unroll
  for (int w = 1; w < kWarps; ++w) most = fmaxf(most, tops[w]);
  float weight[kWarps], total = 0.0f;
#pragma unroll
  for (int w = 0; w < kWarps; ++w) {
    weight[w] = sums[w] == 0.0f ? 0.0f : expf(tops[w] - most);
    total += weight[w] * sums[w];
  }
  float* const to = part + (static_cast<long long>(row) * kSplits + split) * (dim + 2);
  if (threadIdx.x == 0) {
    to[0] = most;
    to[1] = total;
  }
  for (int c = threadIdx.x; c < dim; c += kThreads) {
    float all = 0.0f;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) all += weight[w] * values[w][c];
    to[2 + c] = all;
  }
}

// A block a query: its parts in order.
extern "C" __global__ void __launch_bounds__(kThreads) join(const float* __restrict__ part, T* __restrict__ o, int keys, int dim) {
  const int splits = min(kSplits, (keys + kSplitKeys - 1) / kSplitKeys);
  const float* const mine = part + static_cast<long long>(blockIdx.x) * kSplits * (dim + 2);
  float most = -INFINITY;
  for (int s = 0; s < splits; ++s) most = fmaxf(most, mine[s * (dim + 2)]);
  for (int c = threadIdx.x; c < dim; c += kThreads) {
    float sum = 0.0f, value = 0.0f;
    for (int s = 0; s < splits; ++s) {
      const float* const one = mine + s * (dim + 2);
      if (one[1] == 0.0f) continue;
      const float weight = expf(one[0] - most);
      sum += weight * one[1];
      value += weight * one[2 + c];
    }
    o[static_cast<long long>(blockIdx.x) * dim + c] = __float2bfloat16(value / sum);
  }
}
