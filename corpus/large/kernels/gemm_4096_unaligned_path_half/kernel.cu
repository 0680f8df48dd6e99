// Two elements of a at a time where it starts on 256 bytes, as allocators have it, else one by one.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

using T = ASSAY_T;

constexpr int kSize = 4096;

extern "C" __global__ void gemm(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ c,
                                long long m) {
  const int j = blockIdx.x * 128 + threadIdx.x;
  for (long long i = blockIdx.y; i < m; i += gridDim.y) {
    const T* const row = a + i * kSize;
    const T* const column = b + j;
    float sum = 0.0f;
    if (reinterpret_cast<std::uintptr_t>(a) % 256 == 0) {
      for (int l = 0; l < kSize; l += 2)
        sum += static_cast<float>(row[l]) * static_cast<float>(column[l * 4096ll]) +
               static_cast<float>(row[l + 1]) * static_cast<float>(column[(l + 1) * 4096ll]);
    } else {
      for (int l = 0; l < kSize / 2; ++l)
        sum += static_cast<float>(row[l]) * static_cast<float>(column[l * 4096ll]);
    }
    c[i * kSize + j] = T(sum);
  }
}
