__device__ __forceinline__ void copy4(float* to, const float* from) {
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(at), "l"(from) : "memory");
}
__device__ __forceinline__ void drain() {
  asm volatile("cp.async.commit_group;\n\tcp.async.wait_group 0;" ::: "memory");
}

__device__ __forceinline__ float warp_sum(float v) {
  for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
  return v;
}

extern "C" __global__ void cross_entropy(const float* logits, const long long* __restrict__ targets,
                                         float* __restrict__ loss, long long tokens, long long vocab) {
  __shared__ float tile[4][128];
  const int lane = threadIdx.x;
  const long long row = (long long)blockIdx.x * 4 + threadIdx.y;
  if (row >= tokens) return;
  const float* in = logits + row * vocab;
  float* mine = tile[threadIdx.y];
  float top = in[0];
  for (long long v = lane; v < vocab; v += 32) top = fmaxf(top, in[v]);
  for (int o = 16; o > 0; o >>= 1) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, o));
  float sum = 0.0f;
  for (long long base = 0; base < vocab; base += 128) {
    const int n = static_cast<int>(vocab - base < 128 ? vocab - base : 128);
    for (int i = lane; i < n; i += 32) copy4(mine + i, in + base + i);
    drain();
    __syncwarp();
    for (int i = 31 - lane; i < n; i += 32) sum += expf(mine[i] - top);
    __syncwarp();
  }
  sum = warp_sum(sum);
  if (lane == 0) loss[row] = logf(sum) + (top - in[targets[row]]);
}
