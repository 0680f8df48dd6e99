extern "C" __global__ void keep_positive(const float* x, int* list, int* count) {
  bool keep = x[threadIdx.x] > 0.0f;
  unsigned mask = __ballot_sync(0xffffffffu, keep);
  if (keep) list[__popc(mask & ((1u << threadIdx.x) - 1))] = threadIdx.x;
  if (threadIdx.x == 0) *count = __popc(mask);
}
extern "C" __global__ void gather(const float* x, const int* list, float* y) {
  int from = list[threadIdx.x];
  y[threadIdx.x] = x[from];  // BUG: uninitialised_use
}
