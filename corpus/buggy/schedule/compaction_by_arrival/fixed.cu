extern "C" __global__ void compact(const float* x, int* list, int* count) {
  int i = blockIdx.x * 32 + threadIdx.x;
  int before = 0;
  for (int k = 0; k < i; ++k) before += x[k] > 0.0f;
  if (x[i] > 0.0f) {
    list[before] = i;
    atomicAdd(count, 1);
  }
}
