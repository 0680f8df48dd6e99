// Block- and warp-wide algorithms of CUB.
#include <cub/block/block_load.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>

constexpr int kThreads = 128;
constexpr int kItems = 4;

/// out[block] = sum of in over the block's 128 elements, by three algorithms in turn.
template <cub::BlockReduceAlgorithm kAlgorithm>
__device__ int Sum(int value) {
  using Reduce = cub::BlockReduce<int, kThreads, kAlgorithm>;
  __shared__ typename Reduce::TempStorage storage;
  return Reduce(storage).Sum(value);
}
extern "C" __global__ void block_reduce(const int* in, int* out) {
  const int value = in[blockIdx.x * kThreads + threadIdx.x];
  const int raking = Sum<cub::BLOCK_REDUCE_RAKING>(value);
  const int ordered = Sum<cub::BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY>(value);
  const int warps = Sum<cub::BLOCK_REDUCE_WARP_REDUCTIONS>(value);
  if (threadIdx.x == 0) {
    out[3 * blockIdx.x] = raking;
    out[3 * blockIdx.x + 1] = ordered;
    out[3 * blockIdx.x + 2] = warps;
  }
}

/// Exclusive sums over a tile of 512, loaded and stored through shared memory.
extern "C" __global__ void block_scan(const int* in, int* out) {
  using Load = cub::BlockLoad<int, kThreads, kItems, cub::BLOCK_LOAD_TRANSPOSE>;
  using Store = cub::BlockStore<int, kThreads, kItems, cub::BLOCK_STORE_WARP_TRANSPOSE>;
  using Scan = cub::BlockScan<int, kThreads>;
  __shared__ union {
    typename Load::TempStorage load;
    typename Store::TempStorage store;
    typename Scan::TempStorage scan;
  } storage;
  const int base = blockIdx.x * kThreads * kItems;
  int items[kItems];
  Load(storage.load).Load(in + base, items);
  __syncthreads();
  Scan(storage.scan).ExclusiveSum(items, items);
  __syncthreads();
  Store(storage.store).Store(out + base, items);
}

/// Sorts each tile of 512 keys, with their values.
extern "C" __global__ void block_radix_sort(const unsigned* keys, const int* values,
                                            unsigned* sorted_keys, int* sorted_values) {
  using Sort = cub::BlockRadixSort<unsigned, kThreads, kItems, int>;
  __shared__ typename Sort::TempStorage storage;
  const int base = (blockIdx.x * kThreads + threadIdx.x) * kItems;
  unsigned key[kItems];
  int value[kItems];
  for (int i = 0; i < kItems; ++i) {
    key[i] = keys[base + i];
    value[i] = values[base + i];
  }
  Sort(storage).Sort(key, value);
  for (int i = 0; i < kItems; ++i) {
    sorted_keys[base + i] = key[i];
    sorted_values[base + i] = value[i];
  }
}

/// Maximum and inclusive sum of each warp of 32, and sums of logical warps of 8.
extern "C" __global__ void warp_algorithms(const int* in, int* maximum, int* sums, int* eights) {
  using Reduce = cub::WarpReduce<int>;
  using Scan = cub::WarpScan<int>;
  using Eight = cub::WarpReduce<int, 8>;
  __shared__ typename Reduce::TempStorage reduce[kThreads / 32];
  __shared__ typename Scan::TempStorage scan[kThreads / 32];
  __shared__ typename Eight::TempStorage eight[kThreads / 8];
  const int thread = blockIdx.x * kThreads + threadIdx.x;
  const int warp = threadIdx.x / 32;
  const int value = in[thread];
  const int largest = Reduce(reduce[warp]).Reduce(value, [](int a, int b) { return a > b ? a : b; });
  int sum;
  Scan(scan[warp]).InclusiveSum(value, sum);
  const int of_eight = Eight(eight[threadIdx.x / 8]).Sum(value);
  if (threadIdx.x % 32 == 0) maximum[thread / 32] = largest;
  if (threadIdx.x % 8 == 0) eights[thread / 8] = of_eight;
  sums[thread] = sum;
}
