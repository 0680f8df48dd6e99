extern "C" __global__ void k(const int* x, unsigned char* y) {
  int t = threadIdx.x;
  if (x[t] > 4) y[t / 8] |= 1u << (t % 8);  // BUG: data_race
}
