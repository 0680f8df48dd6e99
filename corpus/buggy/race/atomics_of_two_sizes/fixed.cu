extern "C" __global__ void argmax(const int* x, unsigned long long* best) {
  unsigned i = blockIdx.x * 32 + threadIdx.x;
  unsigned long long pair = static_cast<unsigned long long>(x[i]) << 32 | i;
  atomicMax(best, pair);
}
