#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

constexpr int kHidden = 4096;
constexpr int kWarps = 8;
constexpr int kPieces = kHidden / 8 / 32;  // 16-byte pieces of a lane

// A warp a row, which stays in registers between the two passes; each warp has a share of rows that follow one
// another. The weights lie in shared memory.
extern "C" __global__ void __launch_bounds__(kWarps * 32)
    rms_norm(const T* __restrict__ x, const T* __restrict__ weight, float eps, T* __restrict__ y,
             long long tokens) {
  __shared__ uint4 weights[kHidden / 8];
  const int lane = threadIdx.x % 32;
  for (int i = threadIdx.x; i < kHidden / 8; i += kWarps * 32)
    weights[i] = reinterpret_cast<const uint4*>(weight)[i];
  __syncthreads();
  const long long warps = static_cast<long long>(gridDim.x) * kWarps;
  const long long warp = static_cast<long long>(blockIdx.x) * kWarps + threadIdx.x / 32;
  const long long share = (tokens + warps - 1) / warps;
  const long long begin = warp * share;
  const long long end = begin + share < tokens ? begin + share : tokens;
  for (long long token = begin; token < end; ++token) {
    const uint4* row = reinterpret_cast<const uint4*>(x + token * kHidden);
    uint4* out = reinterpret_cast<uint4*>(y + token * kHidden);
    uint4 piece[kPieces];
#pragma unroll
    for (int i = 0; i < kPieces; ++i) piece[i] = row[i * 32 + lane];
    float squares = 0.0f;
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
      const __nv_bfloat162* pair = reinterpret_cast<const __nv_bfloat162*>(&piece[i]);
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const float2 f = __bfloat1622float2(pair[e]);
        squares += f.x * f.x + f.y * f.y;
      }
    }
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2)
      squares += __shfl_xor_sync(0xffffffffu, squares, offset);
    const float scale = rsqrtf(squares / static_cast<float>(kHidden) + eps);
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
      const uint4 w = weights[i * 32 + lane];
      uint4 packed;
      const __nv_bfloat162* pair = reinterpret_cast<const __nv_bfloat162*>(&piece[i]);
      const __nv_bfloat162* by = reinterpret_cast<const __nv_bfloat162*>(&w);
      __nv_bfloat162* to = reinterpret_cast<__nv_bfloat162*>(&packed);
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const float2 f = __bfloat1622float2(pair[e]), g = __bfloat1622float2(by[e]);
        to[e] = __floats2bfloat162_rn(f.x * scale * g.x, f.y * scale * g.y);
      }
      out[i * 32 + lane] = packed;
    }
  }
}
