// A thread a token.
//
// launch: {"kernels": [{"entry": "greedy_token", "grid": ["ceil_div(tokens, 32)"], "block": [32], "args": ["hidden", "head", "out", "tokens", "width", "vocab"]}]}
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void greedy_token(const T* hidden, const T* head, long long* out, long long tokens, long long width, long long vocab) {
  const long long token = blockIdx.x * 32ll + threadIdx.x;
  if (token >= tokens) return;
  float top = 0;
  for (long long word = 0; word < vocab; ++word) {
    float sum = 0;
    for (long long c = 0; c < width; ++c) sum += static_cast<float>(hidden[token * width + c]) * static_cast<float>(head[word * width + c]);
    if (word == 0 || sum > top) top = sum, out[token] = word;
  }
}
