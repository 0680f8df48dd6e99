// Right: four slices of k into the workspace, added up by a second launch.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void slices(const T* __restrict__ a, const T* __restrict__ b, float* parts,
                                  long long m, long long n, long long k) {
  const long long e = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (e >= m * n) return;
  const long long slice = blockIdx.y;
  const long long length = (k + 3) / 4;
  const long long end = min(k, (slice + 1) * length);
  float sum = 0.0f;
  for (long long l = slice * length; l < end; ++l)
    sum += static_cast<float>(a[e / n * k + l]) * static_cast<float>(b[l * n + e % n]);
  parts[slice * m * n + e] = sum;
}

extern "C" __global__ void add(const float* parts, T* __restrict__ c, long long m, long long n) {
  const long long e = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (e >= m * n) return;
  float sum = 0.0f;
  for (int slice = 0; slice < 4; ++slice) sum += parts[slice * m * n + e];
  c[e] = T(sum);
}
