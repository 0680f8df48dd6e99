// BUG: nondeterministic is about the result, not about a line.
extern "C" __global__ void compact(const float* x, int* list, int* count) {
  int i = blockIdx.x * 32 + threadIdx.x;
  if (x[i] > 0.0f) list[atomicAdd(count, 1)] = i;
}
