extern "C" __global__ void halve(unsigned short* x) {
  x[threadIdx.x] = static_cast<unsigned short>(x[threadIdx.x] - 0x80u);
}
