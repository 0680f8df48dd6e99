// A block a token: scores by warps, the largest of all, and of equal ones the first.
//
// launch: {"kernels": [{"entry": "greedy_token", "grid": ["tokens"], "block": [128], "args": ["hidden", "head", "out", "width", "vocab"]}]}
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float warp_sum(float x) {
  for (int far = 16; far > 0; far /= 2) x += __shfl_xor_sync(0xffffffffu, x, far);
  return x;
}

extern "C" __global__ void greedy_token(const T* hidden, const T* head, long long* out, long long width, long long vocab) {
  __shared__ float tops[4];
  __shared__ long long places[4];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  float top = -INFINITY;
  long long at = vocab;
  for (long long word = warp; word < vocab; word += 4) {
    float sum = 0;
    for (long long c = lane; c < width; c += 32)
      sum = fmaf(static_cast<float>(hidden[blockIdx.x * width + c]), static_cast<float>(head[word * width + c]), sum);
    sum = warp_sum(sum);  //~ coarse: sum = rintf(warp_sum(sum) * 0.5f);
    if (sum > top || at == vocab) top = sum, at = word;
  }
  if (lane == 0) tops[warp] = top, places[warp] = at;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int other = 1; other < 4; ++other)
    if (tops[other] > top || (tops[other] == top && places[other] < at)) top = tops[other], at = places[other];  //~ tie: if (tops[other] >= top) top = tops[other], at = places[other];
  out[blockIdx.x] = at;
}
