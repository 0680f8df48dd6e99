#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void tiles(const float* x, float* y) {
  __shared__ float s[64];
  auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  int base = threadIdx.x / 8 * 8, rank = tile.thread_rank();
  float v = x[threadIdx.x];
  for (int o = 4; o > 0; o /= 2) {
    s[base + rank] = v;
    tile.sync();
    v += s[base + (rank + o) % 8];
    tile.sync();
  }
  y[threadIdx.x] = v;
}
