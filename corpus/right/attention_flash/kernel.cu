// Right: flash: tiles of 32 keys in shared memory, online softmax.
#include <cuda_fp16.h>
constexpr int kKeys = 32;
// One warp a query; keys in tiles of 32 staged in shared memory; online softmax; lane l owns dims l, l+32, ...
extern "C" __global__ void __launch_bounds__(128) flash(const half* __restrict__ Q, const half* __restrict__ Kp, const half* __restrict__ V, float scale, float softcap, int causal, half* __restrict__ O, int heads, int queries, int keys, int dim) {
  __shared__ half tile[kKeys][256 + 2];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int tiles_q = (queries + 3) / 4;
  const long long head = blockIdx.x / tiles_q;
  const int qi = (int)(blockIdx.x % tiles_q) * 4 + warp;
  const bool live = qi < queries;
  const half* q = Q + (head * queries + (live ? qi : 0)) * (long long)dim;
  const int visible = causal ? keys - queries + qi + 1 : keys;
  float o[8] = {};
  float m = -INFINITY, l = 0.f;
  for (int k0 = 0; k0 < keys; k0 += kKeys) {
    for (int i = threadIdx.x; i < kKeys * dim; i += 128) { const int r = i / dim, c = i % dim; tile[r][c] = k0 + r < keys ? Kp[(head * keys + k0 + r) * (long long)dim + c] : __float2half(0.f); }
    __syncthreads();
    float s = 0.f;
    for (int c = 0; c < dim; ++c) s += __half2float(q[c]) * __half2float(tile[lane][c]);
    s *= scale;
    if (softcap > 0.f) s = softcap * tanhf(s / softcap);
    if (!live || k0 + lane >= visible || k0 + lane >= keys) s = -INFINITY;
    float tm = s;
    for (int w = 16; w > 0; w >>= 1) tm = fmaxf(tm, __shfl_xor_sync(0xffffffffu, tm, w));
    const float nm = fmaxf(m, tm);
    const float p = s == -INFINITY ? 0.f : __expf(s - nm);
    const float alpha = m == -INFINITY ? 0.f : __expf(m - nm);
    float ts = p;
    for (int w = 16; w > 0; w >>= 1) ts += __shfl_xor_sync(0xffffffffu, ts, w);
    l = l * alpha + ts;
    m = nm;
    __syncthreads();
    for (int i = threadIdx.x; i < kKeys * dim; i += 128) { const int r = i / dim, c = i % dim; tile[r][c] = k0 + r < keys ? V[(head * keys + k0 + r) * (long long)dim + c] : __float2half(0.f); }
    __syncthreads();
#pragma unroll
    for (int d = 0; d < 8; ++d) {
      if (d * 32 >= dim) break;
      o[d] *= alpha;
      for (int j = 0; j < kKeys; ++j) {
        const float pj = __shfl_sync(0xffffffffu, p, j);
        if (d * 32 + lane < dim) o[d] += pj * __half2float(tile[j][d * 32 + lane]);
      }
    }
    __syncthreads();
  }
  if (live)
#pragma unroll
    for (int d = 0; d < 8; ++d)
      if (d * 32 + lane < dim) O[(head * queries + qi) * (long long)dim + d * 32 + lane] = __float2half(o[d] / l);
}
