// AdamW in bf16 with f32 moments, in place: tiles of 2048 parameters flow through a ring of four
// stages (cp.async), persistent blocks; a second launch does the parameters after the last whole tile.
#include <cuda_bf16.h>
#include <cuda_pipeline.h>

using bf16 = __nv_bfloat16;

constexpr int kThreads = 256;
constexpr int kTile = kThreads * 8;
constexpr int kStages = 4;
constexpr int kParts = 6;  // 16-byte parts a thread and stage: param, grad, m, m, v, v

struct Step {
  float rate, beta1, beta2, decay, eps, correction1, correction2;
};

__device__ __forceinline__ void update(float& p, float g, float& m, float& v, const Step& s) {
  m = s.beta1 * m + (1.0f - s.beta1) * g;
  v = s.beta2 * v + (1.0f - s.beta2) * g * g;
  p = p - s.rate * s.decay * p -
      s.rate * (m / s.correction1) / (sqrtf(v / s.correction2) + s.eps);
}

// A place in a tensor by its offset in bytes.
__device__ __forceinline__ uint4* place(void* base, long long bytes) {
  return reinterpret_cast<uint4*>(static_cast<char*>(base) + bytes);
}

// Each thread fetches what it updates itself: no barriers.
__device__ __forceinline__ void fetch(uint4 (*stage)[kThreads], bf16* param, bf16* grad, float* m,
                                      float* v, long long tile) {
  const long long first = tile * kTile + threadIdx.x * 8;
  const int t = threadIdx.x;
  __pipeline_memcpy_async(&stage[0][t], place(param, first * 2), 16);
  __pipeline_memcpy_async(&stage[1][t], place(grad, first * 2), 16);
  __pipeline_memcpy_async(&stage[2][t], place(m, first * 4), 16);
  __pipeline_memcpy_async(&stage[3][t], place(m, first * 4 + 16), 16);
  __pipeline_memcpy_async(&stage[4][t], place(v, first * 4), 16);
  __pipeline_memcpy_async(&stage[5][t], place(v, first * 4 + 16), 16);
}

extern "C" __global__ void __launch_bounds__(kThreads)
adamw_tiles(bf16* param, const bf16* grad_in, float* m, float* v, float rate, float beta1,
            float beta2, float decay, float eps, float correction1, float correction2,
            long long n) {
  extern __shared__ uint4 memory[];
  uint4 (*ring)[kParts][kThreads] = reinterpret_cast<uint4 (*)[kParts][kThreads]>(memory);
  bf16* grad = const_cast<bf16*>(grad_in);
  const Step step = {rate, beta1, beta2, decay, eps, correction1, correction2};
  const long long tiles = n / kTile;
  const long long stride = gridDim.x;
  const int t = threadIdx.x;

  for (int s = 0; s < kStages - 1; ++s) {
    const long long tile = blockIdx.x + s * stride;
    if (tile < tiles) fetch(ring[s], param, grad, m, v, tile);
    __pipeline_commit();
  }
  unsigned turn = 0;
  for (long long tile = blockIdx.x; tile < tiles; tile += stride, ++turn) {
    __pipeline_wait_prior(kStages - 2);
    const long long ahead = tile + (kStages - 1) * stride;
    if (ahead < tiles) fetch(ring[(turn + kStages - 1) % kStages], param, grad, m, v, ahead);
    __pipeline_commit();

    uint4 (*stage)[kThreads] = ring[turn % kStages];
    uint4 params = stage[0][t];
    const uint4 grads = stage[1][t];
    uint4 first[2] = {stage[2][t], stage[3][t]};
    uint4 second[2] = {stage[4][t], stage[5][t]};
    __nv_bfloat162* p2 = reinterpret_cast<__nv_bfloat162*>(&params);
    const __nv_bfloat162* g2 = reinterpret_cast<const __nv_bfloat162*>(&grads);
    float* ms = reinterpret_cast<float*>(first);
    float* vs = reinterpret_cast<float*>(second);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float2 p = __bfloat1622float2(p2[i]);
      const float2 g = __bfloat1622float2(g2[i]);
      update(p.x, g.x, ms[2 * i], vs[2 * i], step);
      update(p.y, g.y, ms[2 * i + 1], vs[2 * i + 1], step);
      p2[i] = __floats2bfloat162_rn(p.x, p.y);
    }
    const long long at = tile * kTile + t * 8;
    *place(param, at * 2) = params;
    *place(m, at * 4) = first[0];
    *place(m, at * 4 + 16) = first[1];
    *place(v, at * 4) = second[0];
    *place(v, at * 4 + 16) = second[1];
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
adamw_rest(bf16* param, const bf16* grad, float* m, float* v, float rate, float beta1, float beta2,
           float decay, float eps, float correction1, float correction2, long long n) {
  const Step step = {rate, beta1, beta2, decay, eps, correction1, correction2};
  const long long i = n / kTile * kTile + blockIdx.x * kThreads + threadIdx.x;
  if (i >= n) return;
  float p = __bfloat162float(param[i]);
  float first = m[i];
  float second = v[i];
  update(p, __bfloat162float(grad[i]), first, second, step);
  param[i] = __float2bfloat16_rn(p);
  m[i] = first;
  v[i] = second;
}
