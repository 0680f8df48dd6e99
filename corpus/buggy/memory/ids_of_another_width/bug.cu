extern "C" __global__ void count(const long long* ids, int* out, int n) {
  if (threadIdx.x >= n) return;
  long long id = ids[threadIdx.x];  // BUG: out_of_bounds
  if (id == 0) atomicAdd(out, 1);
}
