extern "C" __global__ void claim(const int* keys, int* owner) {
  int i = blockIdx.x * 32 + threadIdx.x;
  atomicMax(&owner[keys[i] % 8], i + 1);
}
