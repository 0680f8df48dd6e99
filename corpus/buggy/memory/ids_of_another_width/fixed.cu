extern "C" __global__ void count(const int* ids, int* out, int n) {
  if (threadIdx.x >= n) return;
  int id = ids[threadIdx.x];
  if (id == 0) atomicAdd(out, 1);
}
