#include <cub/warp/warp_merge_sort.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>
struct Less {
  __device__ bool operator()(float a, float b) const { return a < b; }
};
extern "C" __global__ void warps(const float* x, float* y) {
  using Reduce = cub::WarpReduce<float, 16>;
  using Scan = cub::WarpScan<float, 8>;
  using Sort = cub::WarpMergeSort<float, 2, 32>;
  __shared__ typename Reduce::TempStorage reduce[4];
  __shared__ typename Scan::TempStorage scan[8];
  __shared__ typename Sort::TempStorage sort[2];
  int t = threadIdx.x;
  float v = x[t];
  float sum = Reduce(reduce[t / 16]).Sum(v);
  y[t] = t % 16 == 0 ? sum : 0.0f;
  float before = 0.0f;
  Scan(scan[t / 8]).ExclusiveSum(v, before);
  y[64 + t] = before;
  float items[2] = {v, -v};
  Sort(sort[t / 32]).Sort(items, Less());
  y[128 + 2 * t] = items[0];
  y[129 + 2 * t] = items[1];
}
