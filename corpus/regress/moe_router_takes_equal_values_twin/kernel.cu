#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;


// A warp a token; logits stay in registers, that of expert e in lane e % 32. Then `chosen` times the largest by warp reduction.
constexpr int kWarps = 4;
constexpr unsigned kAll = 0xffffffffu;

__device__ __forceinline__ unsigned ordered(float f) {
  const unsigned bits = __float_as_uint(f);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

template <int kUsed>
__device__ __forceinline__ void route(const T* __restrict__ row, const T* __restrict__ weight, int* __restrict__ expert,
                                      float* __restrict__ share, long long hidden, int experts, int chosen) {
  const int lane = threadIdx.x;
  const float none = __int_as_float(0xff800000);
  float logits[kUsed];
#pragma unroll
  for (int i = 0; i < kUsed; ++i) {
    logits[i] = none;
#pragma unroll 1
    for (int l = 0; l < 32 && i * 32 + l < experts; ++l) {
      const T* w = weight + (i * 32 + l) * hidden;
      float sum = 0.0f;
      for (long long h = lane; h < hidden; h += 32) sum = fmaf(static_cast<float>(row[h]), static_cast<float>(w[h]), sum);
      for (int offset = 16; offset > 0; offset >>= 1) sum += __shfl_xor_sync(kAll, sum, offset);
      if (lane == l) logits[i] = sum + 0.0f;  // no -0
    }
  }
  float first = 0.0f, total = 0.0f;
  float kept[2] = {0.0f, 0.0f};
  int chose[2] = {0, 0};
  for (int k = 0; k < chosen; ++k) {
    float mine = logits[0];
    int slot = 0;
#pragma unroll
    for (int i = 1; i < kUsed; ++i) {
      if (logits[i] > mine) {
        mine = logits[i];
        slot = i;
      }
    }
    const unsigned key = ordered(mine);
    const int winner = __ffs(__ballot_sync(kAll, key == __reduce_max_sync(kAll, key))) - 1;
    const float logit = __shfl_sync(kAll, mine, winner);
    const int e = __shfl_sync(kAll, slot, winner) * 32 + winner;
    if (lane == winner) {
#pragma unroll
      for (int i = 0; i < kUsed; ++i) {
        if (i == slot) logits[i] = none;
      }
    }
    if (k == 0) first = logit;
    total += expf(logit - first);
    if (lane == k % 32) {
      if (k < 32) {
        kept[0] = logit;
        chose[0] = e;
      } else {
        kept[1] = logit;
        chose[1] = e;
      }
    }
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int k = i * 32 + lane;
    if (k < chosen) {
      expert[k] = chose[i];
      share[k] = expf(kept[i] - first) / total;
    }
  }
}

template <int kUsed>
__global__ void __launch_bounds__(kWarps * 32) moe_router(const T* __restrict__ x, const T* __restrict__ weight, int* __restrict__ expert,
                                                          float* __restrict__ share, long long tokens, long long hidden, int experts,
                                                          int chosen) {
  const long long token = static_cast<long long>(blockIdx.x) * kWarps + threadIdx.y;
  if (token >= tokens) return;
  route<kUsed>(x + token * hidden, weight, expert + token * chosen, share + token * chosen, hidden, experts, chosen);
}
