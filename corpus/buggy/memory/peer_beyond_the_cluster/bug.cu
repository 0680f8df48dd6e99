#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void k(const int* x, int* y) {
  __shared__ int s[32];
  auto c = cg::this_cluster();
  s[threadIdx.x] = x[blockIdx.x * 32 + threadIdx.x];
  c.sync();
  const int* other = c.map_shared_rank(s, c.block_rank() + 1);
  y[blockIdx.x * 32 + threadIdx.x] = other[threadIdx.x];  // BUG: out_of_bounds
  c.sync();
}
