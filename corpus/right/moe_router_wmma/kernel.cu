// One warp eight tokens: their logits on tensor cores, 32 experts at a time, edges staged with zeros; then the rounds of choosing, token by token.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;
using T = ASSAY_T;

constexpr int kTokens = 8, kExperts = 32, kDepth = 16, kMostExperts = 1024;
constexpr unsigned kAll = 0xffffffffu;

// The larger logit, of equal ones the earlier expert; -1 is nobody.
__device__ int better(const float* logits, int a, int b) {
  if (a < 0 || b < 0) return a < 0 ? b : a;
  if (logits[a] != logits[b]) return logits[a] > logits[b] ? a : b;
  return a < b ? a : b;
}

extern "C" __global__ void moe_router_wmma(const T* __restrict__ x, const T* __restrict__ weight, int* __restrict__ expert,
                                           float* __restrict__ share, long long tokens, long long hidden, long long experts,
                                           long long chosen) {
  __shared__ __align__(32) T tile_x[kTokens * kDepth];
  __shared__ __align__(32) T tile_weight[kExperts * kDepth];
  __shared__ __align__(32) float logits[kTokens * kMostExperts];
  __shared__ bool taken[kMostExperts];
  const int lane = threadIdx.x;
  const long long t0 = static_cast<long long>(blockIdx.x) * kTokens;
  for (long long e0 = 0; e0 < experts; e0 += kExperts) {
    wmma::fragment<wmma::accumulator, kTokens, kExperts, kDepth, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    for (long long h0 = 0; h0 < hidden; h0 += kDepth) {
      for (int i = lane; i < kTokens * kDepth; i += 32) {
        const long long t = t0 + i / kDepth, h = h0 + i % kDepth;
        tile_x[i] = t < tokens && h < hidden ? x[t * hidden + h] : T(0.0f);
      }
      for (int i = lane; i < kExperts * kDepth; i += 32) {
        const long long e = e0 + i / kDepth, h = h0 + i % kDepth;
        tile_weight[i] = e < experts && h < hidden ? weight[e * hidden + h] : T(0.0f);
      }
      __syncwarp();
      wmma::fragment<wmma::matrix_a, kTokens, kExperts, kDepth, T, wmma::row_major> a;
      wmma::fragment<wmma::matrix_b, kTokens, kExperts, kDepth, T, wmma::col_major> b;
      wmma::load_matrix_sync(a, tile_x, kDepth);
      wmma::load_matrix_sync(b, tile_weight, kDepth);
      wmma::mma_sync(sum, a, b, sum);
      __syncwarp();
    }
    wmma::store_matrix_sync(logits + e0, sum, kMostExperts, wmma::mem_row_major);
  }
  for (long long t = t0; t < tokens && t < t0 + kTokens; ++t) {
    const float* mine = logits + (t - t0) * kMostExperts;
    for (int e = lane; e < experts; e += 32) taken[e] = false;
    __syncwarp();
    float first = 0.0f, total = 0.0f;
    for (long long k = 0; k < chosen; ++k) {
      int best = -1;
      for (int e = lane; e < experts; e += 32)
        if (!taken[e]) best = better(mine, best, e);
      for (int offset = 16; offset > 0; offset /= 2) best = better(mine, best, __shfl_xor_sync(kAll, best, offset));
      if (k == 0) first = mine[best];
      total += expf(mine[best] - first);
      __syncwarp();  // All have read `taken` before it changes.
      if (lane == 0) {
        taken[best] = true;
        expert[t * chosen + k] = best;
      }
      __syncwarp();
    }
    for (long long k = lane; k < chosen; k += 32) share[t * chosen + k] = expf(mine[expert[t * chosen + k]] - first) / total;
    __syncwarp();
  }
}
