extern "C" __global__ void k(const int* x, unsigned char* y) {
  int t = threadIdx.x;
  unsigned m = __ballot_sync(~0u, x[t] > 4);
  if (t < 4) y[t] = m >> (8 * t);
}
