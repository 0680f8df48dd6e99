// A thread a token: scores are computed as often as they are looked at.
//
// launch: {"kernels": [{"entry": "moe_route", "grid": ["ceil_div(tokens, 32)"], "block": [32], "args": ["x", "gate", "out0", "out1", "tokens", "hidden", "experts"]}]}
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void moe_route(const T* x, const T* gate, float* out0, long long* out1, long long tokens, long long hidden, long long experts) {
  const long long token = blockIdx.x * 32ll + threadIdx.x;
  if (token >= tokens) return;
  float best[2] = {0, 0};
  long long which[2] = {-1, -1};
  for (int round = 0; round < 2; ++round)
    for (long long e = 0; e < experts; ++e) {
      if (round == 1 && e == which[0]) continue;
      float sum = 0;
      for (long long c = 0; c < hidden; ++c) sum += static_cast<float>(x[token * hidden + c]) * static_cast<float>(gate[e * hidden + c]);
      if (which[round] < 0 || sum > best[round]) best[round] = sum, which[round] = e;
    }
  const float first = 1.0f, second = expf(best[1] - best[0]);
  out0[token * 2] = first / (first + second), out0[token * 2 + 1] = second / (first + second);
  out1[token * 2] = which[0], out1[token * 2 + 1] = which[1];
}
