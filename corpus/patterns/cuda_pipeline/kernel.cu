#include <cooperative_groups.h>
#include <cuda/pipeline>
namespace cg = cooperative_groups;
extern "C" __global__ void staged(const float* x, float* y, int tiles) {
  __shared__ __align__(16) float tile[2][64];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  auto block = cg::this_thread_block();
  auto pipe = cuda::make_pipeline(block, &state);
  float sum = 0.0f;
  for (int k = 0, fetched = 0; k < tiles; ++k) {
    for (; fetched < tiles && fetched < k + 2; ++fetched) {
      pipe.producer_acquire();
      cuda::memcpy_async(block, tile[fetched % 2], x + fetched * 64, cuda::aligned_size_t<4>(64 * sizeof(float)), pipe);
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    sum += tile[k % 2][63 - threadIdx.x];
    pipe.consumer_release();
  }
  y[threadIdx.x] = sum;
}
