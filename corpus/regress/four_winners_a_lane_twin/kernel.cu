#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

// A warp a token. Each lane keeps the best four of its stripe of the experts, in order; the warp takes the best head.
constexpr int kKept = 4;

__device__ bool better(float v, int e, float w, int f) { return e >= 0 && (f < 0 || v > w || (v == w && e < f)); }

extern "C" __global__ void moe_router(const T* __restrict__ x, const T* __restrict__ weight, int* __restrict__ expert,
                                      float* __restrict__ share, long long hidden, long long experts, long long chosen) {
  __shared__ float logits[1024];
  __shared__ float picked[64];
  const long long token = blockIdx.x;
  const int lane = threadIdx.x;
  for (long long e = 0; e < experts; ++e) {
    float sum = 0.0f;
    for (long long h = lane; h < hidden; h += 32)
      sum = fmaf(static_cast<float>(x[token * hidden + h]), static_cast<float>(weight[e * hidden + h]), sum);
    for (int o = 16; o > 0; o >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, o);
    if (lane == 0) logits[e] = sum;
  }
  __syncwarp();
  float value[kKept];
  int at[kKept];
  // The best of the stripe that come after (last, last_at); all of them for last_at < 0.
  const auto refill = [&](float last, int last_at) {
#pragma unroll
    for (int i = 0; i < kKept; ++i) at[i] = -1, value[i] = 0.0f;
    for (int e = lane; e < experts; e += 32) {
      float v = logits[e];
      int f = e;
      if (last_at >= 0 && !better(last, last_at, v, f)) continue;
#pragma unroll
      for (int i = 0; i < kKept; ++i) {
        if (better(v, f, value[i], at[i])) {
          const float w = value[i];
          const int g = at[i];
          value[i] = v;
          at[i] = f;
          v = w;
          f = g;
        }
      }
    }
  };
  refill(0.0f, -1);
  float first = 0.0f, total = 0.0f;
  for (int k = 0; k < chosen; ++k) {
    float best = value[0];
    int who = at[0];
    for (int o = 16; o > 0; o >>= 1) {
      const float v = __shfl_xor_sync(0xffffffffu, best, o);
      const int e = __shfl_xor_sync(0xffffffffu, who, o);
      if (better(v, e, best, who)) {
        best = v;
        who = e;
      }
    }
    if (k == 0) first = best;
    total += expf(best - first);
    if (lane == 0) {
      expert[token * chosen + k] = who;
      picked[k] = best;
    }
    if (who == at[0]) {
#pragma unroll
      for (int i = 0; i + 1 < kKept; ++i) value[i] = value[i + 1], at[i] = at[i + 1];
      at[kKept - 1] = -1;
      if (at[0] < 0) refill(best, who);
    }
  }
  __syncwarp();
  for (int k = lane; k < chosen; k += 32) share[token * chosen + k] = expf(picked[k] - first) / total;
}
