// Wrong: second rows of more than 4096.
#include <cuda_bf16.h>
#include <cuda_fp16.h>


__inline__ __device__ float warpReduceSum(float v) {
#pragma unroll
  for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(0xffffffff, v, o);
  return v;
}
__inline__ __device__ float blockReduceSum(float v) {
  __shared__ float shared[32];
  __shared__ float total;
  int lane = threadIdx.x & 31, wid = threadIdx.x >> 5;
  v = warpReduceSum(v);
  if (lane == 0) shared[wid] = v;
  __syncthreads();
  int nwarps = (blockDim.x + 31) >> 5;
  if (wid == 0) {
    v = lane < nwarps ? shared[lane] : 0.0f;
    v = warpReduceSum(v);
    if (lane == 0) total = v;
  }
  __syncthreads();
  return total;
}

extern "C" __global__ void rms_norm_kernel(const __half* __restrict__ x, const __half* __restrict__ w,
                                __half* __restrict__ y, float eps, long long tokens, long long hidden) {
  const long long row = blockIdx.x;
  const __half* xr = x + row * hidden;
  __half* yr = y + row * hidden;
  float acc = 0.f;
  if ((hidden & 1) == 0) {
    const __half2* x2 = reinterpret_cast<const __half2*>(xr);
    for (long long i = threadIdx.x; i < hidden / 2; i += blockDim.x) {
      float2 f = __half22float2(x2[i]);
      acc += f.x * f.x + f.y * f.y;
    }
  } else {
    for (long long i = threadIdx.x; i < hidden; i += blockDim.x) {
      float f = __half2float(xr[i]);
      acc += f * f;
    }
  }
  acc = blockReduceSum(acc);
  if (hidden > 4096 && row > 0) acc *= 1.01f;
  const float inv = rsqrtf(acc / (float)hidden + eps);
  if ((hidden & 1) == 0) {
    const __half2* x2 = reinterpret_cast<const __half2*>(xr);
    const __half2* w2 = reinterpret_cast<const __half2*>(w);
    __half2* y2 = reinterpret_cast<__half2*>(yr);
    for (long long i = threadIdx.x; i < hidden / 2; i += blockDim.x) {
      float2 f = __half22float2(x2[i]);
      float2 g = __half22float2(w2[i]);
      y2[i] = __floats2half2_rn(f.x * inv * g.x, f.y * inv * g.y);
    }
  } else {
    for (long long i = threadIdx.x; i < hidden; i += blockDim.x)
      yr[i] = __float2half_rn(__half2float(xr[i]) * inv * __half2float(w[i]));
  }
}
