// cuda::barrier, cuda::pipeline, cuda::memcpy_async, atomic_ref.
#include <cooperative_groups.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda/std/array>
#include <cuda/std/span>

// Barriers in shared memory are initialised by init().
#pragma nv_diag_suppress static_var_with_dynamic_init

namespace cg = cooperative_groups;

/// Producers and consumers: warp 0 fills a buffer of two stages, warp 1 empties it.
extern "C" __global__ void producer_consumer(const int* in, int* out, int rounds) {
  using Barrier = cuda::barrier<cuda::thread_scope_block>;
  __shared__ int buffer[2][32];
  __shared__ Barrier full[2];
  __shared__ Barrier empty[2];
  if (threadIdx.x == 0) {
    for (int s = 0; s < 2; ++s) {
      init(&full[s], 64);
      init(&empty[s], 64);
    }
  }
  __syncthreads();
  const int lane = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    for (int r = 0; r < rounds; ++r) {
      empty[r % 2].arrive_and_wait();
      buffer[r % 2][lane] = in[r * 32 + lane];
      static_cast<void>(full[r % 2].arrive());
    }
  } else {
    static_cast<void>(empty[0].arrive());
    static_cast<void>(empty[1].arrive());
    for (int r = 0; r < rounds; ++r) {
      full[r % 2].arrive_and_wait();
      out[r * 32 + lane] = 2 * buffer[r % 2][31 - lane];
      static_cast<void>(empty[r % 2].arrive());
    }
  }
}

/// A pipeline of two stages over tiles of 128, copied asynchronously.
extern "C" __global__ void pipelined(const float* in, float* out, int tiles) {
  constexpr int kStages = 2;
  __shared__ __align__(16) float buffer[kStages][128];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, kStages> state;
  const cg::thread_block block = cg::this_thread_block();
  auto pipeline = cuda::make_pipeline(block, &state);
  int fetched = 0;
  float sum = 0;
  for (int tile = 0; tile < tiles; ++tile) {
    for (; fetched < tiles && fetched < tile + kStages; ++fetched) {
      pipeline.producer_acquire();
      cuda::memcpy_async(block, buffer[fetched % kStages], in + fetched * 128,
                         cuda::aligned_size_t<16>(sizeof(float) * 128), pipeline);
      pipeline.producer_commit();
    }
    pipeline.consumer_wait();
    sum += buffer[tile % kStages][(threadIdx.x + 1) % 128];
    pipeline.consumer_release();
  }
  out[threadIdx.x] = sum;
}

/// A thread's own pipeline: each copies and reads its own elements.
extern "C" __global__ void private_pipeline(const float4* in, float4* out, int tiles) {
  __shared__ float4 buffer[2][64];
  auto pipeline = cuda::make_pipeline();
  float4 sum = make_float4(0, 0, 0, 0);
  for (int tile = 0; tile <= tiles; ++tile) {
    if (tile < tiles) {
      pipeline.producer_acquire();
      cuda::memcpy_async(&buffer[tile % 2][threadIdx.x], &in[tile * 64 + threadIdx.x],
                         cuda::aligned_size_t<16>(sizeof(float4)), pipeline);
      pipeline.producer_commit();
    }
    if (tile == 0) continue;
    if (tile < tiles) {
      cuda::pipeline_consumer_wait_prior<1>(pipeline);
    } else {
      cuda::pipeline_consumer_wait_prior<0>(pipeline);
    }
    const float4 value = buffer[(tile - 1) % 2][threadIdx.x];
    sum = make_float4(sum.x + value.x, sum.y + value.y, sum.z + value.z, sum.w + value.w);
    pipeline.consumer_release();
  }
  out[threadIdx.x] = sum;
}

/// memcpy_async bound to a barrier: a bulk copy on sm_90.
extern "C" __global__ void copy_with_barrier(const int* in, int* out) {
  __shared__ __align__(128) int tile[256];
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  const cg::thread_block block = cg::this_thread_block();
  if (block.thread_rank() == 0) init(&barrier, block.size());
  block.sync();
  cuda::memcpy_async(block, tile, in + blockIdx.x * 256, cuda::aligned_size_t<16>(sizeof(int) * 256),
                     barrier);
  barrier.arrive_and_wait();
  for (int i = threadIdx.x; i < 256; i += blockDim.x) out[blockIdx.x * 256 + i] = tile[255 - i];
}

/// Counts by atomic_ref and sums by span and array.
extern "C" __global__ void references(const int* in, int n, int* histogram, int* largest, int* sums) {
  const cuda::std::span<const int> values(in, static_cast<cuda::std::size_t>(n));
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  if (thread >= n) return;
  cuda::atomic_ref<int, cuda::thread_scope_device> count(histogram[values[thread] & 7]);
  count.fetch_add(1, cuda::std::memory_order_relaxed);
  cuda::atomic_ref<int, cuda::thread_scope_device> top(*largest);
  top.fetch_max(values[thread], cuda::std::memory_order_relaxed);
  cuda::std::array<int, 4> window{};
  for (unsigned i = 0; i < window.size(); ++i) window[i] = values[(thread + i) % values.size()];
  int sum = 0;
  for (const int value : window) sum += value;
  sums[thread] = sum;
}

/// Counts in two halves of a word.
extern "C" __global__ void half_words(short* counts) {
  cuda::atomic_ref<short, cuda::thread_scope_device>(counts[0]).fetch_add(1);
  cuda::atomic_ref<short, cuda::thread_scope_device> other(counts[1]);
  short seen = other.load(cuda::std::memory_order_relaxed);
  while (!other.compare_exchange_weak(seen, static_cast<short>(seen + 2))) {
  }
}
