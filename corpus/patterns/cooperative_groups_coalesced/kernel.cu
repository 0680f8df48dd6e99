#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;
extern "C" __global__ void groups(const int* x, int* count, int* sums, int* places) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  if (x[i] % 3 == 0) {
    cg::coalesced_group active = cg::coalesced_threads();
    if (active.thread_rank() == 0) atomicAdd(count, static_cast<int>(active.num_threads()));
    places[i] = cg::exclusive_scan(active, 1, cg::plus<int>());
  } else {
    places[i] = -1;
  }
  tile.sync();
  auto label = cg::labeled_partition(tile, x[i] % 4);
  int sum = cg::reduce(label, x[i], cg::plus<int>());
  if (label.thread_rank() == 0) atomicAdd(&sums[x[i] % 4], sum);
  auto half = cg::binary_partition(tile, x[i] % 2 == 0);
  int most = cg::reduce(half, x[i], cg::greater<int>());
  if (half.thread_rank() == 0) atomicMax(&sums[4 + x[i] % 2], most);
}
