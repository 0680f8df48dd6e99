// Right: a warp a token, at most 1024 blocks, which take further tokens in turns.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

constexpr int kMostExperts = 1024;
constexpr unsigned kAll = 0xffffffffu;

// A warp a token, in turns; logits in shared memory, then `chosen` rounds of "which one is the largest
// of those left".
extern "C" __global__ void moe_router(const T* __restrict__ x, const T* __restrict__ weight,
                                      int* __restrict__ expert, float* __restrict__ share,
                                      long long tokens, long long hidden, long long experts,
                                      long long chosen) {
  __shared__ float logits[kMostExperts];
  __shared__ bool taken[kMostExperts];
  const int lane = threadIdx.x;
  for (int e = lane; e < experts; e += 32) taken[e] = false;
  for (long long token = blockIdx.x; token < tokens; token += gridDim.x) {
    const T* row = x + token * hidden;
    for (long long e = 0; e < experts; ++e) {
      float sum = 0.0f;
      for (long long h = lane; h < hidden; h += 32)
        sum += static_cast<float>(row[h]) * static_cast<float>(weight[e * hidden + h]);
      for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(kAll, sum, offset);
      if (lane == 0) logits[e] = sum;
    }
    __syncwarp();
    float first = 0.0f, total = 0.0f;
    for (long long k = 0; k < chosen; ++k) {
      int best = -1;
      for (int e = lane; e < experts; e += 32) {
        if (!taken[e] && (best < 0 || logits[e] > logits[best])) best = e;
      }
      for (int offset = 16; offset > 0; offset /= 2) {
        const int other = __shfl_xor_sync(kAll, best, offset);
        if (other < 0 || other == best) continue;
        if (best < 0 || logits[other] > logits[best] ||
            (logits[other] == logits[best] && other < best))
          best = other;
      }
      if (k == 0) first = logits[best];
      total += expf(logits[best] - first);
      __syncwarp();  // Shuffles order no memory: all have read `taken` before it changes.
      if (lane == 0) {
        taken[best] = true;
        expert[token * chosen + k] = best;
      }
      __syncwarp();
    }
    for (long long k = lane; k < chosen; k += 32)
      share[token * chosen + k] = expf(logits[expert[token * chosen + k]] - first) / total;
    for (int e = lane; e < experts; e += 32) taken[e] = false;
    __syncwarp();  // the next token's logits come into the same memory
  }
}
