// Blocks that stay: each takes rows in turn and adds to its own row of partial sums for the weight; the block that
// counts last adds those up, in the blocks' order.
#include <cuda_bf16.h>

constexpr unsigned kAll = 0xffffffffu;
constexpr int kThreads = 256;

template <int kWidth>
struct Values {
  float at[kWidth];
};

template <int kWidth>
__device__ __forceinline__ Values<kWidth> load(const __nv_bfloat16* __restrict__ from, long long place) {
  Values<kWidth> r;
  if constexpr (kWidth == 2) {
    const float2 two = __bfloat1622float2(reinterpret_cast<const __nv_bfloat162*>(from)[place]);
    r.at[0] = two.x;
    r.at[1] = two.y;
  } else {
    r.at[0] = __bfloat162float(from[place]);
  }
  return r;
}

template <int kWidth>
__device__ __forceinline__ void store(__nv_bfloat16* __restrict__ to, long long place, const Values<kWidth>& v) {
  if constexpr (kWidth == 2) {
    reinterpret_cast<__nv_bfloat162*>(to)[place] = __floats2bfloat162_rn(v.at[0], v.at[1]);
  } else {
    to[place] = __float2bfloat16_rn(v.at[0]);
  }
}

// kWidth divides hidden.
template <int kWidth>
__global__ void __launch_bounds__(kThreads)
backward(const __nv_bfloat16* __restrict__ x, const __nv_bfloat16* __restrict__ weight,
         const __nv_bfloat16* __restrict__ grad_out, const float* __restrict__ rstd, float* partial, unsigned* counter,
         __nv_bfloat16* __restrict__ grad_x, __nv_bfloat16* __restrict__ grad_weight, long long tokens,
         long long hidden) {
  __shared__ float parts[kThreads / 32];
  __shared__ bool last;
  const int places = static_cast<int>(hidden / kWidth);
  float* mine = partial + blockIdx.x * hidden;
  for (long long row = blockIdx.x; row < tokens; row += gridDim.x) {
    const __nv_bfloat16* from = x + row * hidden;
    const __nv_bfloat16* grad = grad_out + row * hidden;
    const float scale = rstd[row];
    float dot = 0.0f;
    for (int i = threadIdx.x; i < places; i += kThreads) {
      const Values<kWidth> v = load<kWidth>(from, i), g = load<kWidth>(grad, i), w = load<kWidth>(weight, i);
#pragma unroll
      for (int j = 0; j < kWidth; ++j) {
        dot += g.at[j] * w.at[j] * v.at[j];
        mine[i * kWidth + j] += g.at[j] * v.at[j] * scale;  // this thread's own columns
      }
    }
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) dot += __shfl_xor_sync(kAll, dot, offset);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = dot;
    __syncthreads();
    float all = 0.0f;
#pragma unroll
    for (int i = 0; i < kThreads / 32; ++i) all += parts[i];
    __syncthreads();
    const float slope = scale * scale * (all / static_cast<float>(hidden));
    for (int i = threadIdx.x; i < places; i += kThreads) {
      const Values<kWidth> v = load<kWidth>(from, i), g = load<kWidth>(grad, i), w = load<kWidth>(weight, i);
      Values<kWidth> r;
#pragma unroll
      for (int j = 0; j < kWidth; ++j) r.at[j] = scale * (g.at[j] * w.at[j] - v.at[j] * slope);
      store<kWidth>(grad_x + row * hidden, i, r);
    }
  }

  // The block's sums are written, and then it is counted.
  if (threadIdx.x == 0) __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    last = atomicAdd(counter, 1u) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (!last) return;
  for (int i = threadIdx.x; i < places; i += kThreads) {
    Values<kWidth> sum;
#pragma unroll
    for (int j = 0; j < kWidth; ++j) sum.at[j] = 0.0f;
    for (unsigned p = 0; p < gridDim.x; ++p) {
#pragma unroll
      for (int j = 0; j < kWidth; ++j) sum.at[j] += partial[p * hidden + i * kWidth + j];
    }
    store<kWidth>(grad_weight, i, sum);
  }
}
