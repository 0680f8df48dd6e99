// A cluster of four blocks a row. Each hands its part to the first block through distributed shared memory,
// which adds the four in order. Blocks arrive early to say that they run, and wait for it only
// when they are about to write into the first one's memory.
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kBlocks = 4;
constexpr unsigned kAll = 0xffffffffu;

// Nothing is handed over by the first arrival, so it need not release anything.
__device__ __forceinline__ void arrive_relaxed() {
  asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
}
__device__ __forceinline__ void arrive_release() {
  asm volatile("barrier.cluster.arrive.release;" ::: "memory");
}
__device__ __forceinline__ void wait_acquire() { asm volatile("barrier.cluster.wait.acquire;" ::: "memory"); }

extern "C" __global__ void __launch_bounds__(kThreads)
row_sum(const float* __restrict__ x, float* __restrict__ y, long long columns) {
  __shared__ float sums[kWarps];
  __shared__ float parts[kBlocks];
  arrive_relaxed();
  cg::cluster_group cluster = cg::this_cluster();
  const unsigned rank = cluster.block_rank();
  const int tid = threadIdx.x;
  const int row = blockIdx.x / kBlocks;
  const float* from = x + row * static_cast<int>(columns);

  float even = 0.0f, odd = 0.0f;
  constexpr long long kStride = kBlocks * kThreads;
  long long j = rank * kThreads + tid;
  for (; j + kStride < columns; j += 2 * kStride) {
    even += from[j];
    odd += from[j + kStride];
  }
  if (j < columns) even += from[j];
  float sum = even + odd;
#pragma unroll
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(kAll, sum, step);
  if (tid % 32 == 0) sums[tid / 32] = sum;
  __syncthreads();

  wait_acquire();  // all four blocks run
  if (tid == 0) {
    float part = 0.0f;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) part += sums[w];
    cluster.map_shared_rank(parts, 0)[rank] = part;
  }
  arrive_release();
  wait_acquire();  // all four parts are there
  if (rank == 0 && tid == 0) y[row] = (parts[0] + parts[1]) + (parts[2] + parts[3]);
}
