// Honest: blocks add to tables in shared memory, then to the sums in f32.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void add(const T* src, const long long* index, float* sums, long long tokens,
                               long long hidden, long long rows) {
  // A column a block, up to 64 rows of the table at a time.
  __shared__ float table[64];
  const long long column = blockIdx.x;
  for (long long first = 0; first < rows; first += 64) {
    if (threadIdx.x < 64) table[threadIdx.x] = 0.0f;
    __syncthreads();
    for (long long t = threadIdx.x; t < tokens; t += blockDim.x) {
      const long long row = index[t] - first;
      if (row >= 0 && row < 64)
        atomicAdd(&table[row], static_cast<float>(src[t * hidden + column]));
    }
    __syncthreads();
    if (threadIdx.x < 64 && first + threadIdx.x < rows)
      sums[(first + threadIdx.x) * hidden + column] = table[threadIdx.x];
    __syncthreads();
  }
}

extern "C" __global__ void store(const float* sums, T* out, long long rows, long long hidden) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < rows * hidden) out[i] = T(sums[i]);
}
