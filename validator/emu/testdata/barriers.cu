// mbarriers, bulk copies, cuda::barrier and cuda::pipeline. Compiled with: nvcc -ptx -arch=sm_90 -lineinfo barriers.cu
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda/ptx>

using Barrier = cuda::barrier<cuda::thread_scope_block>;
namespace cg = cooperative_groups;

// Arrivals and waits in place of __syncthreads.
extern "C" __global__ void arrive_wait(const int* x, int* y) {
  __shared__ int s[64];
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ Barrier barrier;
  if (threadIdx.x == 0) init(&barrier, blockDim.x);
  __syncthreads();
  for (int r = 0; r < 3; ++r) {
    s[threadIdx.x] = x[threadIdx.x] + r;
    barrier.arrive_and_wait();
    y[r * 64 + threadIdx.x] = s[63 - threadIdx.x];
    Barrier::arrival_token token = barrier.arrive();
    barrier.wait(std::move(token));
  }
}

// One thread fetches a tile with a bulk copy, all wait for its bytes; the result goes back with a bulk copy.
extern "C" __global__ void bulk(const int* x, int* y) {
  __shared__ alignas(128) int tile[256];
  __shared__ Barrier barrier;
  if (threadIdx.x == 0) {
    init(&barrier, blockDim.x);
    cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
  }
  __syncthreads();
  Barrier::arrival_token token;
  if (threadIdx.x == 0) {
    cuda::memcpy_async(tile, x + blockIdx.x * 256, cuda::aligned_size_t<16>(sizeof(tile)), barrier);
    token = cuda::device::barrier_arrive_tx(barrier, 1, 0);
  } else {
    token = barrier.arrive();
  }
  barrier.wait(std::move(token));
  for (int i = threadIdx.x; i < 256; i += blockDim.x) tile[i] += 1;
  cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
  __syncthreads();
  if (threadIdx.x == 0) {
    cuda::ptx::cp_async_bulk(cuda::ptx::space_global, cuda::ptx::space_shared, y + blockIdx.x * 256, tile, sizeof(tile));
    cuda::ptx::cp_async_bulk_commit_group();
    cuda::ptx::cp_async_bulk_wait_group(cuda::ptx::n32_t<0>());
  }
}

// The bytes of a bulk copy are read without waiting for them.
extern "C" __global__ void bulk_without_wait(const int* x, int* y) {
  __shared__ alignas(128) int tile[64];
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) {
    cuda::ptx::mbarrier_init(&barrier, 1);
    cuda::ptx::cp_async_bulk(cuda::ptx::space_cluster, cuda::ptx::space_global, tile, x, sizeof(tile), &barrier);
    cuda::ptx::mbarrier_arrive_expect_tx(cuda::ptx::sem_release, cuda::ptx::scope_cta, cuda::ptx::space_shared, &barrier, sizeof(tile));
  }
  __syncthreads();
  y[threadIdx.x] = tile[threadIdx.x];
}

// An mbarrier that nobody initialised.
extern "C" __global__ void not_initialised(const int* x, int* y) {
  __shared__ uint64_t barrier;
  cuda::ptx::mbarrier_arrive(&barrier);
  y[threadIdx.x] = 1;
}

// A two-stage pipeline of the whole block.
extern "C" __global__ void block_pipeline(const int* x, int* y, int steps) {
  __shared__ int stage[2][64];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  auto block = cg::this_thread_block();
  auto pipe = cuda::make_pipeline(block, &state);
  pipe.producer_acquire();
  cuda::memcpy_async(block, stage[0], x, 64 * sizeof(int), pipe);
  pipe.producer_commit();
  for (int s = 0; s < steps; ++s) {
    if (s + 1 < steps) {
      pipe.producer_acquire();
      cuda::memcpy_async(block, stage[(s + 1) % 2], x + 64 * (s + 1), 64 * sizeof(int), pipe);
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    y[s * 64 + threadIdx.x] = stage[s % 2][63 - threadIdx.x];
    pipe.consumer_release();
  }
}

// Cooperative groups: tiles, coalesced groups, reductions.
extern "C" __global__ void groups(const int* x, int* y) {
  auto block = cg::this_thread_block();
  auto tile = cg::tiled_partition<8>(block);
  int sum = cg::reduce(tile, x[threadIdx.x], cg::plus<int>());
  int odd = 0;
  if (threadIdx.x % 2) {
    auto active = cg::coalesced_threads();
    odd = active.size() * 1000 + active.thread_rank();
  }
  y[threadIdx.x] = sum + odd;
}
