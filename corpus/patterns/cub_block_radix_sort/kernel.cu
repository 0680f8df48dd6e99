#include <cub/block/block_radix_sort.cuh>
extern "C" __global__ void sort(const int* keys, int* out, int* order) {
  using Sort = cub::BlockRadixSort<int, 64, 4, int>;
  __shared__ typename Sort::TempStorage storage;
  int k[4], v[4];
  for (int i = 0; i < 4; ++i) {
    v[i] = threadIdx.x * 4 + i;
    k[i] = keys[v[i]];
  }
  Sort(storage).SortBlockedToStriped(k, v);
  for (int i = 0; i < 4; ++i) {
    out[threadIdx.x + 64 * i] = k[i];
    order[threadIdx.x + 64 * i] = v[i];
  }
}
