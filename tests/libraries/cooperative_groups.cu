// Cooperative groups: tiles, coalesced threads, blocks, grids, clusters' cousins.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

namespace cg = cooperative_groups;

/// Sums of tiles of 16, and inclusive sums within them.
extern "C" __global__ void tiles(const int* in, int* sums, int* scans) {
  const auto tile = cg::tiled_partition<16>(cg::this_thread_block());
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  const int value = in[thread];
  const int sum = cg::reduce(tile, value, cg::plus<int>());
  scans[thread] = cg::inclusive_scan(tile, value, cg::plus<int>());
  if (tile.thread_rank() == 0) sums[thread / 16] = sum;
}

/// Keeps the odd values: one atomic a group of threads that stand together.
extern "C" __global__ void compact(const int* in, int* kept, int* count) {
  const int value = in[blockIdx.x * blockDim.x + threadIdx.x];
  if ((value & 1) != 0) {
    const cg::coalesced_group active = cg::coalesced_threads();
    int place = 0;
    if (active.thread_rank() == 0) place = atomicAdd(count, static_cast<int>(active.size()));
    place = active.shfl(place, 0) + static_cast<int>(active.thread_rank());
    kept[place] = value;
  }
}

/// Grid-wide: each block's sum, then every thread adds all of them up.
extern "C" __global__ void grid_sum(const int* in, int* partial, int* total) {
  const cg::grid_group grid = cg::this_grid();
  const cg::thread_block block = cg::this_thread_block();
  __shared__ int sum;
  if (block.thread_rank() == 0) sum = 0;
  block.sync();
  atomicAdd(&sum, in[grid.thread_rank()]);
  block.sync();
  if (block.thread_rank() == 0) partial[blockIdx.x] = sum;
  grid.sync();
  int all = 0;
  for (unsigned b = 0; b < gridDim.x; ++b) all += partial[b];
  total[grid.thread_rank()] = all;
}

/// memcpy_async of a whole block, and a reduction over the block's tile in shared memory.
extern "C" __global__ void copy_async(const int* in, int* out) {
  __shared__ __align__(16) int tile[128];
  const cg::thread_block block = cg::this_thread_block();
  cg::memcpy_async(block, tile, in + blockIdx.x * 128, sizeof(int) * 128);
  cg::wait(block);
  out[blockIdx.x * 128 + threadIdx.x] = tile[127 - threadIdx.x];
}

/// Binary partition by label: the size of the group of each label within a warp.
extern "C" __global__ void labels(const int* in, int* sizes) {
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  const auto group = cg::labeled_partition(warp, in[thread] & 3);
  sizes[thread] = static_cast<int>(group.size());
}

/// Tiles of several warps meet at barriers in reserved shared memory.
extern "C" __global__ void wide_tiles(const int* in, int* sums, int* scans) {
  __shared__ cg::block_tile_memory<256> memory;
  const auto block = cg::this_thread_block(memory);
  const auto two = cg::tiled_partition<64>(block);
  const auto four = cg::tiled_partition<128>(block);
  const int thread = static_cast<int>(block.thread_rank());
  sums[thread] = cg::reduce(two, in[thread], cg::plus<int>());
  scans[thread] = cg::inclusive_scan(four, in[thread], cg::plus<int>());
}
