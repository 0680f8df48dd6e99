extern "C" __global__ void k(const unsigned short* x, unsigned* y) {
  __shared__ unsigned s[32];
  int t = threadIdx.x;
  reinterpret_cast<unsigned short*>(s)[2 * t] = x[t];
  __syncwarp();
  y[t] = __byte_perm(s[31 - t], s[t], 0x5410);
}
