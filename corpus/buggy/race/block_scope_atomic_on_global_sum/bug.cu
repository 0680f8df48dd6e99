extern "C" __global__ void count(const int* x, int* total) {
  int v = x[blockIdx.x * 32 + threadIdx.x];
  if (v % 3 == 0) atomicAdd_block(total, 1);  // BUG: data_race
}
