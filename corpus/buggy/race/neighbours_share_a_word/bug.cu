// Each thread halves one bf16 by reading, patching and writing back the 32-bit word around it.
extern "C" __global__ void halve(unsigned short* x) {
  unsigned* word = reinterpret_cast<unsigned*>(x) + threadIdx.x / 2;
  unsigned shift = threadIdx.x % 2 * 16;
  unsigned old = *word;
  unsigned half = (old >> shift & 0xffffu) - 0x80u;
  *word = (old & ~(0xffffu << shift)) | (half & 0xffffu) << shift;  // BUG: data_race
}
