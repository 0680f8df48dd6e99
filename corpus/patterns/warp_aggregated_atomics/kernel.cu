extern "C" __global__ void filter(const float* x, int* list, int* count) {
  int i = blockIdx.x * 64 + threadIdx.x, lane = threadIdx.x % 32;
  bool keep = x[i] > 0.0f;
  unsigned mask = __ballot_sync(0xffffffffu, keep);
  int base = 0;
  if (lane == 0) base = atomicAdd(count, __popc(mask));
  base = __shfl_sync(0xffffffffu, base, 0);
  if (keep) list[base + __popc(mask & ((1u << lane) - 1))] = i;
}
