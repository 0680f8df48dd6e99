// Prefix sums of rows in three kernels: sums of tiles, their exclusive scan, and the scan of each
// tile from where it starts.
#include <cuda_fp16.h>

constexpr int kThreads = 128;
constexpr int kItems = 4;
constexpr int kTile = kThreads * kItems;
constexpr int kWarps = kThreads / 32;

// Inclusive scan over the block; total is the sum of all.
__device__ float block_scan(float value, float* warps, float& total) {
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  for (int offset = 1; offset < 32; offset *= 2) {
    const float left = __shfl_up_sync(0xffffffffu, value, offset);
    if (lane >= offset) value += left;
  }
  if (lane == 31) warps[warp] = value;
  __syncthreads();
  float before = 0.0f;
  total = 0.0f;
  for (int i = 0; i < kWarps; ++i) {
    if (i < warp) before += warps[i];
    total += warps[i];
  }
  __syncthreads();
  return value + before;
}

__device__ void load_items(const __half* __restrict__ x, float (&items)[kItems], int first,
                           int columns) {
#pragma unroll
  for (int j = 0; j < kItems; ++j)
    items[j] = first + j < columns ? __half2float(x[first + j]) : 0.0f;
}

extern "C" __global__ void __launch_bounds__(kThreads)
    sum_tiles(const __half* __restrict__ x, float* __restrict__ sums, int rows, int columns) {
  __shared__ float warps[kWarps];
  const int tiles = gridDim.x;
  const int first = blockIdx.x * kTile + threadIdx.x * kItems;
  for (int row = blockIdx.y; row < rows; row += gridDim.y) {
    float items[kItems];
    load_items(x + static_cast<size_t>(row) * columns, items, first, columns);
    float total;
    block_scan((items[0] + items[1]) + (items[2] + items[3]), warps, total);
    if (threadIdx.x == 0) sums[static_cast<size_t>(row) * tiles + blockIdx.x] = total;
  }
}

// One block a row turns the sums of its tiles into what comes before each.
extern "C" __global__ void __launch_bounds__(kThreads) scan_tiles(float* sums, int columns) {
  __shared__ float warps[kWarps];
  const int tiles = (columns + kTile - 1) / kTile;
  float* row = sums + static_cast<size_t>(blockIdx.x) * tiles;
  float carry = 0.0f;
  for (int first = 0; first < tiles; first += kThreads) {
    const int i = first + threadIdx.x;
    const float own = i < tiles ? row[i] : 0.0f;
    float total;
    const float scanned = block_scan(own, warps, total);
    // What lies before a tile: all earlier tiles, not the tile itself.
    const float left = __shfl_up_sync(0xffffffffu, scanned, 1);
    if (threadIdx.x % 32 == 31) warps[threadIdx.x / 32] = scanned;
    __syncthreads();
    float before = threadIdx.x % 32 > 0 ? left : 0.0f;
    if (threadIdx.x % 32 == 0 && threadIdx.x > 0) before = warps[threadIdx.x / 32 - 1];
    if (i < tiles) row[i] = carry + before;
    carry += total;
    __syncthreads();
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    scan_rows(const __half* __restrict__ x, const float* __restrict__ sums, __half* __restrict__ y,
              int rows, int columns) {
  __shared__ float warps[kWarps];
  const int tiles = gridDim.x;
  const int first = blockIdx.x * kTile + threadIdx.x * kItems;
  for (int row = blockIdx.y; row < rows; row += gridDim.y) {
    const size_t base = static_cast<size_t>(row) * columns;
    float items[kItems];
    load_items(x + base, items, first, columns);
#pragma unroll
    for (int j = 1; j < kItems; ++j) items[j] += items[j - 1];
    float total;
    const float scanned = block_scan(items[kItems - 1], warps, total);
    // The thread's own sum comes off by a shuffle, not by a difference.
    float before = __shfl_up_sync(0xffffffffu, scanned, 1);
    if (threadIdx.x % 32 == 31) warps[threadIdx.x / 32] = scanned;
    __syncthreads();
    if (threadIdx.x % 32 == 0) before = threadIdx.x > 0 ? warps[threadIdx.x / 32 - 1] : 0.0f;
    before += sums[static_cast<size_t>(row) * tiles + blockIdx.x];
#pragma unroll
    for (int j = 0; j < kItems; ++j)
      if (first + j < columns) y[base + first + j] = __float2half(before + items[j]);
    __syncthreads();
  }
}
