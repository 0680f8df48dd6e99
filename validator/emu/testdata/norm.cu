// Compiled with: nvcc -ptx -arch=sm_90 -lineinfo norm.cu
#include <cuda_bf16.h>
#include <cuda_fp16.h>

__device__ float WarpSum(float v) {
  for (int offset = 16; offset > 0; offset /= 2) v += __shfl_xor_sync(0xffffffffu, v, offset);
  return v;
}

template <class T>
__device__ void RmsNorm(const T* x, const T* w, T* y, int hidden, float eps) {
  __shared__ float part[32];
  const T* row = x + (size_t)blockIdx.x * hidden;
  float sum = 0;
  for (int i = threadIdx.x; i < hidden; i += blockDim.x) {
    float v = float(row[i]);
    sum += v * v;
  }
  sum = WarpSum(sum);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x < 32) {
    float v = threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0;
    v = WarpSum(v);
    if (threadIdx.x == 0) part[0] = v;
  }
  __syncthreads();
  float scale = rsqrtf(part[0] / hidden + eps);
  for (int i = threadIdx.x; i < hidden; i += blockDim.x) {
    y[(size_t)blockIdx.x * hidden + i] = T(float(row[i]) * scale * float(w[i]));
  }
}

extern "C" __global__ void rms_bf16(const __nv_bfloat16* x, const __nv_bfloat16* w, __nv_bfloat16* y, int hidden, float eps) {
  RmsNorm(x, w, y, hidden, eps);
}
extern "C" __global__ void rms_f16(const __half* x, const __half* w, __half* y, int hidden, float eps) {
  RmsNorm(x, w, y, hidden, eps);
}
extern "C" __global__ void rms_f32(const float* x, const float* w, float* y, int hidden, float eps) {
  RmsNorm(x, w, y, hidden, eps);
}

// Adds one row of `grad` a token to the row of `table` that its id names.
extern "C" __global__ void scatter_add(const float* grad, const long long* ids, float* table, __nv_bfloat16* low, int tokens, int hidden) {
  int token = blockIdx.x;
  for (int i = threadIdx.x; i < hidden; i += blockDim.x) {
    atomicAdd(table + ids[token] * hidden + i, grad[(size_t)token * hidden + i]);
    atomicAdd(low + ids[token] * hidden + i, __nv_bfloat16(1.0f));
  }
}
