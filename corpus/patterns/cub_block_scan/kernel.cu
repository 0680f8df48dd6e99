#include <cub/block/block_scan.cuh>
extern "C" __global__ void scans(const int* x, int* y) {
  using Raking = cub::BlockScan<int, 64, cub::BLOCK_SCAN_RAKING>;
  using Warps = cub::BlockScan<int, 64, cub::BLOCK_SCAN_WARP_SCANS>;
  __shared__ union {
    typename Raking::TempStorage raking;
    typename Warps::TempStorage warps;
  } storage;
  int items[4], more[4];
  int base = blockIdx.x * 256 + threadIdx.x * 4;
  for (int i = 0; i < 4; ++i) items[i] = x[base + i];
  int total = 0;
  Raking(storage.raking).ExclusiveSum(items, more, total);
  __syncthreads();
  Warps(storage.warps).InclusiveSum(items, items);
  for (int i = 0; i < 4; ++i) y[base + i] = items[i] + more[i] + total;
}
