extern "C" __global__ void keep_positive(const float* x, int* list, int* count) {
  bool keep = x[threadIdx.x] > 0.0f;
  unsigned mask = __ballot_sync(0xffffffffu, keep);
  int kept = __popc(mask), before = __popc(mask & ((1u << threadIdx.x) - 1));
  list[keep ? before : kept + threadIdx.x - before] = keep ? static_cast<int>(threadIdx.x) : -1;
  if (threadIdx.x == 0) *count = kept;
}
extern "C" __global__ void gather(const float* x, const int* list, float* y) {
  int from = list[threadIdx.x];
  y[threadIdx.x] = from >= 0 ? x[from] : 0.0f;
}
