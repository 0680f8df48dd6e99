#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void phases(const float* x, float* tmp, float* y) {
  auto grid = cg::this_grid();
  int i = blockIdx.x * 64 + threadIdx.x;
  tmp[i] = x[i] * 2.0f;
  grid.sync();
  float v = tmp[255 - i];
  grid.sync();
  tmp[i] = v + 1.0f;
  grid.sync();
  y[i] = tmp[(i + 64) % 256];
}
