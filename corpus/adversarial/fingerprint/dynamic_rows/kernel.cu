#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
using T = ASSAY_T;

extern "C" __global__ void __launch_bounds__(128)
softmax(const T* __restrict__ x, T* __restrict__ y, unsigned* next, long long rows, long long columns) {
  const auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  for (;;) {
    unsigned ticket = 0;
    if (tile.thread_rank() == 0) ticket = atomicAdd(next, 1u);
    const long long row = tile.shfl(ticket, 0);
    if (row >= rows) break;
    const T* in = x + row * columns;
    float top = static_cast<float>(in[0]);
    for (long long j = tile.thread_rank(); j < columns; j += 32) top = fmaxf(top, static_cast<float>(in[j]));
    for (int o = 16; o > 0; o >>= 1) top = fmaxf(top, tile.shfl_xor(top, o));
    float den = 0.0f;
    for (long long j = tile.thread_rank(); j < columns; j += 32) den += expf(static_cast<float>(in[j]) - top);
    den = cg::reduce(tile, den, cg::plus<float>());
    for (long long j = tile.thread_rank(); j < columns; j += 32)
      y[row * columns + j] = T(expf(static_cast<float>(in[j]) - top) / den);
  }
}
