// Right: one ticket lock for all rows.
#include <cuda/atomic>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

using Word = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;

extern "C" __global__ void scatter(const T* __restrict__ src, const long long* __restrict__ index,
                                   float* sums, unsigned* tickets, long long hidden) {
  __shared__ unsigned mine;
  const long long token = blockIdx.x;
  const long long row = index[token];
  Word next(tickets[0]), serving(tickets[1]);
  if (threadIdx.x == 0) {
    mine = next.fetch_add(1u, cuda::memory_order_relaxed);
    while (serving.load(cuda::memory_order_acquire) != mine) {
    }
  }
  __syncthreads();
  for (long long j = threadIdx.x; j < hidden; j += blockDim.x)
    sums[row * hidden + j] += static_cast<float>(src[token * hidden + j]);
  __syncthreads();
  if (threadIdx.x == 0) serving.store(mine + 1, cuda::memory_order_release);
}

extern "C" __global__ void finish(const float* __restrict__ sums, T* __restrict__ out, long long rows, long long hidden) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < rows * hidden) out[i] = T(sums[i]);
}
