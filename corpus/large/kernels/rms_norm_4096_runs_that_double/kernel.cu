// RMS norm of rows of 4096: blocks take runs of rows, 256 runs a level, and runs double in length from
// level to level, so that few tokens spread over many blocks and many tokens make few runs.
#include <cuda_bf16.h>

namespace {

constexpr int kHidden = 4096;
constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kRuns = 256;
constexpr int kLevels = 13;

// The row at which a level begins: 256 * (2^level - 1).
__constant__ int kFirst[kLevels] = {
    0, 256, 768, 1792, 3840, 7936, 16128,
    32512, 65280, 130816, 261888, 524032, 1048320};

struct Row {
  uint4 part[2];
};

__device__ __forceinline__ Row fetch(const __nv_bfloat16* x, long long row) {
  const uint4* from = reinterpret_cast<const uint4*>(x + row * kHidden);
  Row r;
  r.part[0] = __ldg(from + threadIdx.x);
  r.part[1] = __ldg(from + kThreads + threadIdx.x);
  return r;
}

__device__ __forceinline__ void unpack(const uint4& v, float (&out)[8]) {
  const unsigned words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    out[2 * i] = __uint_as_float(words[i] << 16);
    out[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
  }
}

__device__ __forceinline__ unsigned pack(float low, float high) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const unsigned*>(&both);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads)
    rms_norm_runs(const __nv_bfloat16* __restrict__ x, const __nv_bfloat16* __restrict__ weight, float eps,
                  __nv_bfloat16* __restrict__ y, long long tokens) {
  __shared__ float sums[2][kWarps];
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  float w[2][8];
#pragma unroll
  for (int p = 0; p < 2; ++p) unpack(reinterpret_cast<const uint4*>(weight)[p * kThreads + threadIdx.x], w[p]);

  int turn = 0;
  for (int run = blockIdx.x; run < kRuns * kLevels; run += gridDim.x) {
    const int level = run / kRuns;
    const long long first = kFirst[level] + (static_cast<long long>(run % kRuns) << level);
    if (first >= tokens) break;
    const long long end = min(first + (1ll << level), tokens);
    Row next = fetch(x, first);
    for (long long row = first; row < end; ++row) {
      const Row now = next;
      if (row + 1 < end) next = fetch(x, row + 1);
      float value[2][8];
      float squares = 0.0f;
#pragma unroll
      for (int p = 0; p < 2; ++p) {
        unpack(now.part[p], value[p]);
#pragma unroll
        for (int e = 0; e < 8; ++e) squares = fmaf(value[p][e], value[p][e], squares);
      }
#pragma unroll
      for (int distance = 16; distance > 0; distance /= 2)
        squares += __shfl_xor_sync(0xffffffffu, squares, distance);
      if (lane == 0) sums[turn][warp] = squares;
      __syncthreads();
      float total = 0.0f;
#pragma unroll
      for (int i = 0; i < kWarps; ++i) total += sums[turn][i];
      turn ^= 1;
      const float scale = rsqrtf(total / kHidden + eps);
      uint4* to = reinterpret_cast<uint4*>(y + row * kHidden);
#pragma unroll
      for (int p = 0; p < 2; ++p) {
        uint4 r;
        r.x = pack(value[p][0] * scale * w[p][0], value[p][1] * scale * w[p][1]);
        r.y = pack(value[p][2] * scale * w[p][2], value[p][3] * scale * w[p][3]);
        r.z = pack(value[p][4] * scale * w[p][4], value[p][5] * scale * w[p][5]);
        r.w = pack(value[p][6] * scale * w[p][6], value[p][7] * scale * w[p][7]);
        to[p * kThreads + threadIdx.x] = r;
      }
    }
  }
}
