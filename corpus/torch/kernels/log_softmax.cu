// A block a row; largest element, then sum, through shared memory.
//
// launch: {"kernels": [{"entry": "log_softmax", "grid": ["rows"], "block": [128], "args": ["x", "out", "columns"]}]}
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float warp_sum(float x) {
  for (int far = 16; far > 0; far /= 2) x += __shfl_xor_sync(0xffffffffu, x, far);
  return x;
}

__device__ float warp_max(float x) {
  for (int far = 16; far > 0; far /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, far));
  return x;
}

extern "C" __global__ void log_softmax(const T* x, T* out, long long columns) {
  __shared__ float tops[4], sums[4];
  const T* in = x + blockIdx.x * columns;
  float top = -INFINITY;
  for (long long j = threadIdx.x; j < columns; j += 128) top = fmaxf(top, static_cast<float>(in[j]));
  top = warp_max(top);
  if (threadIdx.x % 32 == 0) tops[threadIdx.x / 32] = top;
  __syncthreads();  //~ barrier: ;
  top = fmaxf(fmaxf(tops[0], tops[1]), fmaxf(tops[2], tops[3]));
  float sum = 0;
  for (long long j = threadIdx.x; j < columns; j += 128) sum += expf(static_cast<float>(in[j]) - top);
  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  const float logged = logf(sums[0] + sums[1] + sums[2] + sums[3]);  //~ half: const float logged = __half2float(__float2half(logf(sums[0] + sums[1] + sums[2] + sums[3])));
  for (long long j = threadIdx.x; j < columns; j += 128)
    out[blockIdx.x * columns + j] = T(static_cast<float>(in[j]) - top - logged);
}
