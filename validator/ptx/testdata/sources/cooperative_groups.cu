// Grid, tile, coalesced and cluster groups.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
__global__ void g(int* x) {
  auto grid = cg::this_grid();
  auto b = cg::this_thread_block();
  auto t = cg::tiled_partition<16>(b);
  int s = cg::reduce(t, x[grid.thread_rank()], cg::plus<int>());
  if (t.thread_rank() == 0) atomicAdd(x, s);
  grid.sync();
  b.sync();
  auto c = cg::coalesced_threads();
  x[c.size()] = c.shfl(s, 0);

#if __CUDA_ARCH__ >= 800
  x[1] = __reduce_add_sync(~0u, s);
#endif
  x[2] = __match_any_sync(~0u, s);
  x[3] = __ballot_sync(~0u, s > 3);
  x[4] = __any_sync(~0u, s);
}
#if __CUDA_ARCH__ >= 900
__global__ void __cluster_dims__(2, 1, 1) cl(int* x) {
  __shared__ int s[32];
  auto c = cg::this_cluster();
  s[threadIdx.x] = c.block_rank();
  c.sync();
  int* r = c.map_shared_rank(s, c.block_rank() ^ 1);
  x[threadIdx.x] = r[threadIdx.x];
  c.sync();
}
#endif
