// Gate of a mixture of experts: logits = x @ weight^T (2048 to 128), best 8, softmax over those. f16.
//
// A block takes 64 tokens, in up to four fragments. Eight warps, 16 experts each, wmma 16x16x16 with f32 accumulators; tiles of
// 64 along hidden go through registers, so that the next one is on its way while tensor cores work.
// The logits then take the place of the tiles in shared memory, and each warp selects for two tokens.
#include <cuda_fp16.h>
#include <mma.h>

namespace {

namespace wmma = nvcuda::wmma;

constexpr int kHidden = 2048;
constexpr int kExperts = 128;
constexpr int kChosen = 8;
constexpr int kTokens = 64;
constexpr int kFragments = kTokens / 16;
constexpr int kChunk = 64;
constexpr int kSteps = kHidden / kChunk;
constexpr int kStride = kChunk + 8;
constexpr int kLogitStride = kExperts + 4;
constexpr int kThreads = 256;
constexpr int kVectorsW = kExperts * kChunk / 8 / kThreads;  // 4 a thread
constexpr int kVectorsX = kTokens * kChunk / 8 / kThreads;   // 2 a thread
constexpr unsigned kAll = 0xffffffffu;

struct Fetched {
  uint4 w[kVectorsW];
  uint4 x[kVectorsX];
};

__device__ __forceinline__ void fetch(Fetched& f, const __half* __restrict__ x,
                                      const __half* __restrict__ weight, int first,
                                      int tokens, int step) {
#pragma unroll
  for (int i = 0; i < kVectorsW; ++i) {
    const int vector = threadIdx.x + i * kThreads;
    f.w[i] = *reinterpret_cast<const uint4*>(weight + (vector >> 3) * kHidden + step * kChunk +
                                             (vector & 7) * 8);
  }
#pragma unroll
  for (int i = 0; i < kVectorsX; ++i) {
    const int vector = threadIdx.x + i * kThreads;
    const int token = first + (vector >> 3);
    f.x[i] = make_uint4(0, 0, 0, 0);
    if (token < tokens)
      f.x[i] = *reinterpret_cast<const uint4*>(x + static_cast<size_t>(token) * kHidden +
                                               step * kChunk + (vector & 7) * 8);
  }
}

// Fragments of a last block, by eights of tokens.
__device__ const unsigned char kFragmentsOf[8] = {1, 1, 2, 2, 3, 3, 3, 4};

}  // namespace

extern "C" __global__ void __launch_bounds__(256)
    moe_gate(const __half* __restrict__ x, const __half* __restrict__ weight,
             int* __restrict__ expert, float* __restrict__ share, int tokens) {
  constexpr int kTileBytes = (kExperts + kTokens) * kStride * 2;
  constexpr int kLogitBytes = kTokens * kLogitStride * 4;
  __shared__ __align__(128)
      unsigned char storage[kTileBytes > kLogitBytes ? kTileBytes : kLogitBytes];
  __half* const w_tile = reinterpret_cast<__half*>(storage);
  __half* const x_tile = w_tile + kExperts * kStride;
  float* const logits = reinterpret_cast<float*>(storage);

  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int first = blockIdx.x * kTokens;

  const int fragments = kFragmentsOf[(min(tokens - first, kTokens) - 1) / 8];
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> acc[kFragments];
#pragma unroll
  for (int f = 0; f < kFragments; ++f) wmma::fill_fragment(acc[f], 0.0f);

  Fetched fetched;
  fetch(fetched, x, weight, first, tokens, 0);
  for (int step = 0; step < kSteps; ++step) {
#pragma unroll
    for (int i = 0; i < kVectorsW; ++i) {
      const int vector = threadIdx.x + i * kThreads;
      *reinterpret_cast<uint4*>(w_tile + (vector >> 3) * kStride + (vector & 7) * 8) =
          fetched.w[i];
    }
#pragma unroll
    for (int i = 0; i < kVectorsX; ++i) {
      const int vector = threadIdx.x + i * kThreads;
      *reinterpret_cast<uint4*>(x_tile + (vector >> 3) * kStride + (vector & 7) * 8) =
          fetched.x[i];
    }
    __syncthreads();

    if (step + 1 < kSteps) fetch(fetched, x, weight, first, tokens, step + 1);

#pragma unroll
    for (int k = 0; k < kChunk; k += 16) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> a;
      wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> b;
      wmma::load_matrix_sync(b, w_tile + warp * 16 * kStride + k, kStride);
#pragma unroll
      for (int f = 0; f < kFragments; ++f) {
        if (f >= fragments) break;
        wmma::load_matrix_sync(a, x_tile + f * 16 * kStride + k, kStride);
        wmma::mma_sync(acc[f], a, b, acc[f]);
      }
    }
    __syncthreads();  // All have read the tiles: the next ones, or the logits, may come.
  }

#pragma unroll
  for (int f = 0; f < kFragments; ++f)
    wmma::store_matrix_sync(logits + f * 16 * kLogitStride + warp * 16, acc[f], kLogitStride,
                            wmma::mem_row_major);
  __syncthreads();

  for (int i = 0; i < kTokens / 8; ++i) {
    const int local = warp * (kTokens / 8) + i;
    const int token = first + local;
    if (token >= tokens) break;
    float values[4];
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const float logit = logits[local * kLogitStride + lane + 32 * e];
      values[e] = isnan(logit) ? -INFINITY : logit;
    }
    unsigned taken = 0;
    float largest = 0.0f, total = 0.0f, mine = 0.0f;
#pragma unroll
    for (int round = 0; round < kChosen; ++round) {
      float best = -INFINITY;
      int index = kExperts;
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        if (!(taken >> e & 1u) && (index == kExperts || values[e] > best)) {
          best = values[e];
          index = lane + 32 * e;
        }
      }
#pragma unroll
      for (int offset = 16; offset > 0; offset /= 2) {
        const float other = __shfl_xor_sync(kAll, best, offset);
        const int place = __shfl_xor_sync(kAll, index, offset);
        if (other > best || (other == best && place < index)) {
          best = other;
          index = place;
        }
      }
      if ((index & 31) == lane) taken |= 1u << (index >> 5);
      if (round == 0) largest = best;
      total += __expf(best - largest);
      if (lane == round) {
        mine = best;
        expert[static_cast<size_t>(token) * kChosen + round] = index;
      }
    }
    if (lane < kChosen)
      share[static_cast<size_t>(token) * kChosen + lane] = __expf(mine - largest) / total;
  }
}
