// Tensor maps, bulk copies and mbarriers of sm_90.
#include <cuda.h>

#include <cuda/barrier>
#include <cuda/ptx>
using barrier = cuda::barrier<cuda::thread_scope_block>;
namespace cde = cuda::device::experimental;
#if __CUDA_ARCH__ >= 900
__global__ void tma(const __grid_constant__ CUtensorMap m, int* o) {
  __shared__ alignas(128) int s[64][32];
  __shared__ barrier bar;
  if (threadIdx.x == 0) {
    init(&bar, blockDim.x);
    cde::fence_proxy_async_shared_cta();
  }
  __syncthreads();
  barrier::arrival_token t;
  if (threadIdx.x == 0) {
    cde::cp_async_bulk_tensor_2d_global_to_shared(&s, &m, 0, 0, bar);
    t = cuda::device::barrier_arrive_tx(bar, 1, sizeof(s));
  } else
    t = bar.arrive();
  bar.wait(std::move(t));
  o[threadIdx.x] = s[threadIdx.x][1];
  cde::fence_proxy_async_shared_cta();
  __syncthreads();
  if (threadIdx.x == 0) {
    cde::cp_async_bulk_tensor_2d_shared_to_global(&m, 0, 0, &s);
    cde::cp_async_bulk_commit_group();
    cde::cp_async_bulk_wait_group_read<0>();
  }
}
__global__ void bulk(int* g) {
  __shared__ alignas(16) int s[256];
  __shared__ uint64_t b;
  namespace p = cuda::ptx;
  p::mbarrier_init(&b, 1);
  p::cp_async_bulk(p::space_cluster, p::space_global, s, g, 1024u, &b);
  p::mbarrier_arrive_expect_tx(p::sem_release, p::scope_cta, p::space_shared, &b, 1024u);
  while (!p::mbarrier_try_wait_parity(&b, 0u));
  g[1] = s[3];
  p::fence_proxy_async(p::space_shared);
  p::cp_async_bulk(p::space_global, p::space_shared, g, s, 1024u);
  p::cp_reduce_async_bulk(p::space_global, p::space_shared, p::op_add, g, s, 1024u);
  p::cp_async_bulk_commit_group();
  p::cp_async_bulk_wait_group(p::n32_t<0>());
  cudaGridDependencySynchronize();
  cudaTriggerProgrammaticLaunchCompletion();
}
#endif
