// Right: tiles of 16 by 16 in three stages, at most 65,535 blocks, which take further tiles in turns.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

constexpr int kTile = 16;
constexpr int kStages = 3;

extern "C" __global__ void gemm(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ c,
                                long long m, long long n, long long k) {
  __shared__ float as[kStages][kTile][kTile + 1], bs[kStages][kTile][kTile + 1];
  const int tx = threadIdx.x % kTile, ty = threadIdx.x / kTile;
  const long long across = (n + kTile - 1) / kTile;
  const long long tiles = (m + kTile - 1) / kTile * across;
  const long long chunks = (k + kTile - 1) / kTile;
  for (long long tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const long long i = tile / across * kTile + ty;
    const long long j = tile % across * kTile + tx;
    const auto load = [&](long long chunk) {
      const int stage = static_cast<int>(chunk % kStages);
      const long long l = chunk * kTile;
      as[stage][ty][tx] = i < m && l + tx < k ? static_cast<float>(a[i * k + l + tx]) : 0.0f;
      bs[stage][ty][tx] = l + ty < k && j < n ? static_cast<float>(b[(l + ty) * n + j]) : 0.0f;
    };
    load(0);
    if (chunks > 1) load(1);
    float sum = 0.0f;
    for (long long chunk = 0; chunk < chunks; ++chunk) {
      __syncthreads();  // the chunk is there, and nobody reads the stage that is filled now
      if (chunk + 2 < chunks) load(chunk + 2);
      const int stage = static_cast<int>(chunk % kStages);
      for (int l = 0; l < kTile; ++l) sum += as[stage][ty][l] * bs[stage][l][tx];
    }
    if (i < m && j < n) c[i * n + j] = T(sum);
    __syncthreads();  // the next tile comes into the same memory
  }
}
