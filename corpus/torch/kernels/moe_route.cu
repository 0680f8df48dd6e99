// A warp a token: lanes hold experts, two rounds of the largest, then both shares.
//
// launch: {"kernels": [{"entry": "moe_route", "grid": ["tokens"], "block": [32], "args": ["x", "gate", "out0", "out1", "hidden", "experts"]}]}
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void moe_route(const T* x, const T* gate, float* out0, long long* out1, long long hidden, long long experts) {
  const T* mine = x + blockIdx.x * hidden;
  float best[2];
  long long which[2];
  for (int round = 0; round < 2; ++round) {
    float top = -INFINITY;
    long long at = experts;
    for (long long e = threadIdx.x; e < experts; e += 32) {
      if (round == 1 && e == which[0]) continue;  //~ again: if (round == 2) continue;
      float sum = 0;
      for (long long c = 0; c < hidden; ++c) sum = fmaf(static_cast<float>(mine[c]), static_cast<float>(gate[e * hidden + c]), sum);  //~ precision: for (long long c = 0; c < hidden; ++c) sum = static_cast<float>(T(fmaf(static_cast<float>(mine[c]), static_cast<float>(gate[e * hidden + c]), sum)));
      if (sum > top || at == experts) top = sum, at = e;
    }
    for (int far = 16; far > 0; far /= 2) {
      const float other = __shfl_xor_sync(0xffffffffu, top, far);
      const long long place = __shfl_xor_sync(0xffffffffu, at, far);
      if (place < experts && (at == experts || other > top || (other == top && place < at))) top = other, at = place;
    }
    best[round] = top;
    which[round] = at;
  }
  if (threadIdx.x != 0) return;
  const float less = expf(best[1] - best[0]);
  out0[blockIdx.x * 2] = 1.0f / (1.0f + less);
  out0[blockIdx.x * 2 + 1] = less / (1.0f + less);  //~ rest: out0[blockIdx.x * 2 + 1] = 1.0f - 1.0f / (1.0f + less);
  out1[blockIdx.x * 2] = which[0], out1[blockIdx.x * 2 + 1] = which[1];
}
