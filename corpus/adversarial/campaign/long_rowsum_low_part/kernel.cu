#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

struct Split {
  T high = T(0.0f);
  float low = 0.0f;

  __device__ void add(float value, bool keep) {
    const float sum = static_cast<float>(high) + low + value;
    high = __float2bfloat16_rz(sum);
    const float rest = sum - static_cast<float>(high);
    low = keep && rest == rest ? rest : 0.0f;
  }
};

extern "C" __global__ void row_sum(const T* __restrict__ x, T* __restrict__ y, long long rows,
                                   long long columns) {
  const long long row = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  Split split;
  for (long long j = threadIdx.x; j < columns; j += 32)
    split.add(static_cast<float>(x[row * columns + j]), j < 4096);
  const float sum = warp_sum(static_cast<float>(split.high) + split.low);
  if (threadIdx.x == 0) y[row] = T(sum);
}
