// Attention of 128 heads over 8192 keys: flash with wmma, 64 queries a block, tiles of 64 keys. Where there
// are many tiles of queries, blocks that run at one time take a band of twelve tiles of several heads.
#include <cuda_bf16.h>
#include <mma.h>

using namespace nvcuda;

namespace {

constexpr int kHeads = 128;
constexpr int kKeys = 8192;
constexpr int kRows = 64;
constexpr int kColumns = 64;
constexpr int kDim = 128;
constexpr int kLd = kDim + 8;
constexpr int kLdS = kColumns + 4;
constexpr int kLdP = kColumns + 8;
constexpr int kBand = 12;

// `rows` rows of `dim`, of which those from `there` on are zeros, into rows of 128 that zeros fill up.
__device__ __forceinline__ void bring(__nv_bfloat16* to, const __nv_bfloat16* from, int there, int dim) {
  if (dim % 8 == 0) {
    for (int v = threadIdx.x; v < kRows * kDim / 8; v += blockDim.x) {
      const int row = v / (kDim / 8);
      const int column = v % (kDim / 8) * 8;
      uint4 value = make_uint4(0, 0, 0, 0);
      if (row < there && column < dim)
        value = *reinterpret_cast<const uint4*>(from + static_cast<long long>(row) * dim + column);
      *reinterpret_cast<uint4*>(to + row * kLd + column) = value;
    }
  } else {
    for (int e = threadIdx.x; e < kRows * kDim; e += blockDim.x) {
      const int row = e / kDim;
      const int column = e % kDim;
      to[row * kLd + column] =
          row < there && column < dim ? from[static_cast<long long>(row) * dim + column] : __float2bfloat16(0.0f);
    }
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(128)
    attention_bands(const __nv_bfloat16* __restrict__ q, const __nv_bfloat16* __restrict__ k,
                    const __nv_bfloat16* __restrict__ v, float scale, float softcap, int causal,
                    __nv_bfloat16* __restrict__ o, long long queries, long long dim) {
  extern __shared__ __align__(128) unsigned char memory[];
  __nv_bfloat16* tile_q = reinterpret_cast<__nv_bfloat16*>(memory);
  __nv_bfloat16* tile_k = tile_q + kRows * kLd;
  __nv_bfloat16* tile_v = tile_k + kColumns * kLd;
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  float* score = reinterpret_cast<float*>(tile_v + kColumns * kLd) + warp * 16 * kLdS;
  __nv_bfloat16* weight =
      reinterpret_cast<__nv_bfloat16*>(reinterpret_cast<float*>(tile_v + kColumns * kLd) + 4 * 16 * kLdS) +
      warp * 16 * kLdP;

  const int tiles = static_cast<int>((queries + kRows - 1) / kRows);
  int head, tile;
  if (tiles <= 32) {
    head = blockIdx.x / tiles;
    tile = blockIdx.x % tiles;
  } else {
    const int band = blockIdx.x / (kHeads * kBand);
    const int place = blockIdx.x % (kHeads * kBand);
    const int width = kBand;
    head = place / width;
    tile = band * kBand + place % width;
  }
  // The last tiles see the most keys where there is a mask.
  tile = tiles - 1 - tile;
  if (tile < 0) return;
  const long long first = static_cast<long long>(tile) * kRows;
  const int there = static_cast<int>(min(static_cast<long long>(kRows), queries - first));
  const long long seen = causal ? kKeys - queries + first + there : kKeys;

  bring(tile_q, q + (head * queries + first) * dim, there, static_cast<int>(dim));
  const int row = lane / 2;
  const int side = lane % 2;
  const long long visible = causal ? kKeys - queries + min(first + warp * 16 + row, queries - 1) + 1 : kKeys;

  float value[8][8];
#pragma unroll
  for (int f = 0; f < 8; ++f)
#pragma unroll
    for (int e = 0; e < 8; ++e) value[f][e] = 0.0f;
  float largest = -INFINITY;
  float sum = 0.0f;

  for (long long j0 = 0; j0 < seen; j0 += kColumns) {
    __syncthreads();
    bring(tile_k, k + (static_cast<long long>(head) * kKeys + j0) * dim, kColumns, static_cast<int>(dim));
    bring(tile_v, v + (static_cast<long long>(head) * kKeys + j0) * dim, kColumns, static_cast<int>(dim));
    __syncthreads();
    {
      wmma::fragment<wmma::accumulator, 16, 16, 16, float> s[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) wmma::fill_fragment(s[j], 0.0f);
#pragma unroll
      for (int l = 0; l < kDim; l += 16) {
        wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::row_major> fq;
        wmma::load_matrix_sync(fq, tile_q + warp * 16 * kLd + l, kLd);
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::col_major> fk;
          wmma::load_matrix_sync(fk, tile_k + j * 16 * kLd + l, kLd);
          wmma::mma_sync(s[j], fq, fk, s[j]);
        }
      }
#pragma unroll
      for (int j = 0; j < 4; ++j) wmma::store_matrix_sync(score + j * 16, s[j], kLdS, wmma::mem_row_major);
    }
    __syncwarp();
    float mine[32];
    float top = -INFINITY;
#pragma unroll
    for (int e = 0; e < 32; ++e) {
      float s = score[row * kLdS + side * 32 + e] * scale;
      if (softcap > 0.0f) s = softcap * tanhf(s / softcap);
      if (j0 + side * 32 + e >= visible) s = -INFINITY;
      mine[e] = s;
      top = fmaxf(top, s);
    }
    top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
    const float before = largest;
    largest = fmaxf(largest, top);
    const float shrink = __expf(before - largest);
    float part = 0.0f;
#pragma unroll
    for (int e = 0; e < 32; ++e) {
      const float p = __expf(mine[e] - largest);
      part += p;
      weight[row * kLdP + side * 32 + e] = __float2bfloat16(p);
    }
    part += __shfl_xor_sync(0xffffffffu, part, 1);
    sum = sum * shrink + part;
    __syncwarp();
#pragma unroll
    for (int f = 0; f < 8; ++f) {
      wmma::fragment<wmma::accumulator, 16, 16, 16, float> product;
      wmma::fill_fragment(product, 0.0f);
#pragma unroll
      for (int l = 0; l < kColumns; l += 16) {
        wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::row_major> fp;
        wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::row_major> fv;
        wmma::load_matrix_sync(fp, weight + l, kLdP);
        wmma::load_matrix_sync(fv, tile_v + l * kLd + f * 16, kLd);
        wmma::mma_sync(product, fp, fv, product);
      }
      // Scores were read: their place takes products, two fragments in turns.
      float* out = score + f % 2 * 16;
      wmma::store_matrix_sync(out, product, kLdS, wmma::mem_row_major);
      __syncwarp();
#pragma unroll
      for (int e = 0; e < 8; ++e) value[f][e] = value[f][e] * shrink + out[row * kLdS + side * 8 + e];
    }
    __syncwarp();
  }
  if (warp * 16 + row < there) {
    __nv_bfloat16* to = o + (head * queries + first + warp * 16 + row) * dim;
#pragma unroll
    for (int f = 0; f < 8; ++f)
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        const int column = f * 16 + side * 8 + e;
        if (column < dim) to[column] = __float2bfloat16(value[f][e] / sum);
      }
  }
}
