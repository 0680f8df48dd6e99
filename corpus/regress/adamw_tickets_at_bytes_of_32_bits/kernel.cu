// A step of AdamW in place: warps draw tiles of 1024 parameters from a counter, eight parameters a lane at a time.
#include <cuda_bf16.h>

using T = __nv_bfloat16;

constexpr int kThreads = 256, kItems = 8, kTurns = 4;
constexpr unsigned kTile = 32 * kItems * kTurns;

struct Step {
  float rate, beta1, beta2, decay, eps, correction1, correction2;
  __device__ __forceinline__ float operator()(float p, float g, float& m, float& v) const {
    m = beta1 * m + (1.0f - beta1) * g;
    v = beta2 * v + (1.0f - beta2) * (g * g);
    return p - rate * decay * p - rate * (m / correction1) / (sqrtf(v / correction2) + eps);
  }
};

// Elements of a tensor as vectors, from one of them on.
template <typename V, typename E>
__device__ __forceinline__ V* vector_at(E* tensor, unsigned at) {
  return reinterpret_cast<V*>(reinterpret_cast<size_t>(tensor) + at * static_cast<unsigned>(sizeof(E)));
}

__device__ __forceinline__ unsigned step_pair(const Step& step, unsigned param, unsigned grad, float& m0, float& m1, float& v0, float& v1) {
  const float2 p = __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(&param));
  const float2 g = __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(&grad));
  const float first = step(p.x, g.x, m0, v0), second = step(p.y, g.y, m1, v1);
  const __nv_bfloat162 both = __floats2bfloat162_rn(first, second);
  return *reinterpret_cast<const unsigned*>(&both);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    adamw(T* param, const T* grad, float* m, float* v, float rate, float beta1, float beta2, float decay, float eps,
          float correction1, float correction2, unsigned* counter, long long n) {
  const Step step{rate, beta1, beta2, decay, eps, correction1, correction2};
  const int lane = threadIdx.x % 32;
  const unsigned tiles = static_cast<unsigned>((n + kTile - 1) / kTile);
  while (true) {
    unsigned tile = 0;
    if (lane == 0) tile = atomicAdd(counter, 1u);
    tile = __shfl_sync(0xffffffffu, tile, 0);
    if (tile >= tiles) break;
    const unsigned first = tile * kTile;
    if (n - first >= kTile) {
#pragma unroll
      for (int turn = 0; turn < kTurns; ++turn) {
        const unsigned at = first + (turn * 32 + lane) * kItems;
        uint4* params = vector_at<uint4>(param, at);
        float4* ms = vector_at<float4>(m, at);
        float4* vs = vector_at<float4>(v, at);
        const uint4 g = __ldcs(vector_at<const uint4>(grad, at));
        uint4 p = params[0];
        float4 m0 = ms[0], m1 = ms[1], v0 = vs[0], v1 = vs[1];
        p.x = step_pair(step, p.x, g.x, m0.x, m0.y, v0.x, v0.y);
        p.y = step_pair(step, p.y, g.y, m0.z, m0.w, v0.z, v0.w);
        p.z = step_pair(step, p.z, g.z, m1.x, m1.y, v1.x, v1.y);
        p.w = step_pair(step, p.w, g.w, m1.z, m1.w, v1.z, v1.w);
        params[0] = p;
        ms[0] = m0;
        ms[1] = m1;
        vs[0] = v0;
        vs[1] = v1;
      }
    } else {
      for (long long i = static_cast<long long>(first) + lane; i < n; i += 32) {
        float m0 = m[i], v0 = v[i];
        param[i] = __float2bfloat16(step(__bfloat162float(param[i]), __bfloat162float(grad[i]), m0, v0));
        m[i] = m0;
        v[i] = v0;
      }
    }
  }
}
