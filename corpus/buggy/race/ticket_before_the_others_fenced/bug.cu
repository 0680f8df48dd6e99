extern "C" __global__ void k(const float* x, float* part, unsigned* cnt, float* y) {
  __shared__ bool last;
  int t = threadIdx.x;
  part[blockIdx.x * 64 + t] = x[blockIdx.x * 64 + t] * 2;  // OTHER
  __threadfence();
  if (t == 0) last = atomicAdd(cnt, 1) == gridDim.x - 1;
  __syncthreads();
  if (last) {
    __threadfence();
    if (t == 0) { float s = 0; for (int i = 0; i < 256; ++i) s += part[i]; *y = s; }  // BUG: data_race
  }
}
