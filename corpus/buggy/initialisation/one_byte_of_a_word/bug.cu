extern "C" __global__ void k(const unsigned char* x, unsigned* y) {
  __shared__ __align__(4) unsigned char s[128];
  int t = threadIdx.x;
  for (int j = 0; j < 3; ++j) s[4 * t + j] = x[3 * t + j];
  __syncwarp();
  y[t] = *reinterpret_cast<unsigned*>(s + 4 * (31 - t)) * 3u;  // BUG: uninitialised_use
}
