#include <cub/block/block_discontinuity.cuh>
#include <cub/block/block_histogram.cuh>
#include <cub/block/block_merge_sort.cuh>
struct Less {
  __device__ bool operator()(int a, int b) const { return a < b; }
};
struct Differ {
  __device__ bool operator()(int a, int b) const { return a != b; }
};
extern "C" __global__ void several(const int* x, int* sorted, int* bins, int* heads) {
  using Sort = cub::BlockMergeSort<int, 64, 2>;
  using Histogram = cub::BlockHistogram<unsigned char, 64, 2, 16, cub::BLOCK_HISTO_ATOMIC>;
  using Discontinuity = cub::BlockDiscontinuity<int, 64>;
  __shared__ union {
    typename Sort::TempStorage sort;
    typename Histogram::TempStorage histogram;
    typename Discontinuity::TempStorage discontinuity;
  } storage;
  __shared__ unsigned counts[16];
  int items[2] = {x[threadIdx.x * 2], x[threadIdx.x * 2 + 1]};
  unsigned char bytes[2] = {static_cast<unsigned char>(items[0]), static_cast<unsigned char>(items[1])};
  Histogram(storage.histogram).Histogram(bytes, counts);
  __syncthreads();
  if (threadIdx.x < 16) bins[threadIdx.x] = static_cast<int>(counts[threadIdx.x]);
  Sort(storage.sort).Sort(items, Less());
  __syncthreads();
  int flags[2];
  Discontinuity(storage.discontinuity).FlagHeads(flags, items, Differ());
  for (int i = 0; i < 2; ++i) {
    sorted[threadIdx.x * 2 + i] = items[i];
    heads[threadIdx.x * 2 + i] = flags[i];
  }
}
