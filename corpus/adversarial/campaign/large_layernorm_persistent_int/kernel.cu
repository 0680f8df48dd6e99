#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

extern "C" __global__ void layer_norm(const T* __restrict__ x, const T* __restrict__ weight,
                                      const T* __restrict__ bias, float eps, T* __restrict__ y,
                                      int tokens, int hidden) {
  const int step = gridDim.x * blockDim.y;
  int token = blockIdx.x * blockDim.y + threadIdx.y;
  long long first = static_cast<long long>(token) * hidden * 2;
  int advanced = 0;
  for (; token < tokens; token += step) {
    const long long bytes = first + advanced;
    const T* row = reinterpret_cast<const T*>(reinterpret_cast<const char*>(x) + bytes);
    T* out = reinterpret_cast<T*>(reinterpret_cast<char*>(y) + bytes);
    float sum = 0.0f;
    for (int h = threadIdx.x; h < hidden; h += 32) sum += static_cast<float>(row[h]);
    const float mean = warp_sum(sum) / static_cast<float>(hidden);
    float squares = 0.0f;
    for (int h = threadIdx.x; h < hidden; h += 32) {
      const float deviation = static_cast<float>(row[h]) - mean;
      squares += deviation * deviation;
    }
    const float scale = rsqrtf(warp_sum(squares) / static_cast<float>(hidden) + eps);
    for (int h = threadIdx.x; h < hidden; h += 32)
      out[h] = T((static_cast<float>(row[h]) - mean) * scale * static_cast<float>(weight[h]) +
                 static_cast<float>(bias[h]));
    advanced += step * hidden * 2;
  }
}
