#include <cub/block/block_adjacent_difference.cuh>
#include <cub/block/block_discontinuity.cuh>
#include <cub/block/block_load.cuh>
#include <cub/block/block_shuffle.cuh>
#include <cub/block/block_store.cuh>
struct Differ {
  __device__ bool operator()(int a, int b) const { return a != b; }
};
struct Minus {
  __device__ int operator()(int a, int b) const { return a - b; }
};
extern "C" __global__ void neighbours(const int* x, int* steps, int* heads, int* rotated, int n) {
  using Load = cub::BlockLoad<int, 64, 4, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
  using Store = cub::BlockStore<int, 64, 4, cub::BLOCK_STORE_VECTORIZE>;
  using Difference = cub::BlockAdjacentDifference<int, 64>;
  using Discontinuity = cub::BlockDiscontinuity<int, 64>;
  using Shuffle = cub::BlockShuffle<int, 64>;
  __shared__ union {
    typename Load::TempStorage load;
    typename Difference::TempStorage difference;
    typename Discontinuity::TempStorage discontinuity;
    typename Shuffle::TempStorage shuffle;
  } storage;
  int items[4], out[4];
  Load(storage.load).Load(x, items, n, 0);
  __syncthreads();
  Difference(storage.difference).SubtractLeft(items, out, Minus());
  __syncthreads();
  Store().Store(steps, out);
  Discontinuity(storage.discontinuity).FlagHeads(out, items, Differ());
  __syncthreads();
  Store().Store(heads, out);
  int next;
  Shuffle(storage.shuffle).Rotate(items[0], next, 1);
  rotated[threadIdx.x] = next;
}
