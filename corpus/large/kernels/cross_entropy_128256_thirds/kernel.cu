#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

constexpr int kVocab = 128256;
constexpr int kParts = 3;
constexpr int kPart = kVocab / kParts;
constexpr int kPieces = kPart / 8;
constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr unsigned kAll = 0xffffffffu;
static_assert(kPart * kParts == kVocab && kPart % 8 == 0, "Parts are whole pieces.");

__device__ void join(float& top, float& sum, float other_top, float other_sum) {
  const float most = fmaxf(top, other_top);
  sum = sum * __expf(top - most) + other_sum * __expf(other_top - most);
  top = most;
}

// A third, without a division.
__device__ unsigned third(unsigned n) { return __umulhi(n, 0xaaaaaaabu) >> 1; }

// Persistent blocks, a third of a token's logits a turn: their largest and the sum of their exponentials. The block
// that has the target among its logits notes that logit.
extern "C" __global__ void __launch_bounds__(kThreads)
    parts_of_tokens(const T* __restrict__ logits, const long long* __restrict__ targets,
                    float* __restrict__ tops, float* __restrict__ sums,
                    float* __restrict__ wanted, long long tokens) {
  __shared__ float warp_top[2][kWarps], warp_sum[2][kWarps];
  const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  const unsigned items = static_cast<unsigned>(tokens) * kParts;
  int turn = 0;
  for (unsigned item = blockIdx.x; item < items; item += gridDim.x, turn ^= 1) {
    const unsigned token = third(item);
    const long long begin = static_cast<long long>(item - token * kParts) * kPart;
    const T* row = logits + static_cast<long long>(token) * kVocab;
    const uint4* from = reinterpret_cast<const uint4*>(row + begin);
    if (thread == 0) {
      const long long target = targets[token];
      if (target >= begin && target < begin + kPart)
        wanted[token] = static_cast<float>(row[target]);
    }
    float top = __int_as_float(0xff800000), sum = 0.0f;
#pragma unroll 4
    for (int i = thread; i < kPieces; i += kThreads) {
      const uint4 bits = __ldcs(from + i);
      const __nv_bfloat162* pair = reinterpret_cast<const __nv_bfloat162*>(&bits);
      float f[8];
      float most = top;
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const float2 both = __bfloat1622float2(pair[e]);
        f[2 * e] = both.x;
        f[2 * e + 1] = both.y;
        most = fmaxf(most, fmaxf(both.x, both.y));
      }
      if (most > top) {
        sum *= __expf(top - most);
        top = most;
      }
#pragma unroll
      for (int e = 0; e < 8; ++e) sum += __expf(f[e] - top);
    }
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) {
      const float other_top = __shfl_xor_sync(kAll, top, offset);
      const float other_sum = __shfl_xor_sync(kAll, sum, offset);
      join(top, sum, other_top, other_sum);
    }
    if (lane == 0) {
      warp_top[turn][warp] = top;
      warp_sum[turn][warp] = sum;
    }
    __syncthreads();
    if (thread == 0) {
#pragma unroll
      for (int i = 1; i < kWarps; ++i) join(top, sum, warp_top[turn][i], warp_sum[turn][i]);
      tops[item] = top;
      sums[item] = sum;
    }
  }
}

extern "C" __global__ void losses(const float* __restrict__ tops, const float* __restrict__ sums,
                                  const float* __restrict__ wanted, float* __restrict__ loss,
                                  long long tokens) {
  const long long token = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (token >= tokens) return;
  float top = tops[token * kParts], sum = sums[token * kParts];
#pragma unroll
  for (int i = 1; i < kParts; ++i)
    join(top, sum, tops[token * kParts + i], sums[token * kParts + i]);
  loss[token] = logf(sum) + (top - wanted[token]);
}
