// BUG: nondeterministic is about the result, not about a line.
extern "C" __global__ void claim(const int* keys, int* owner) {
  int i = blockIdx.x * 32 + threadIdx.x;
  atomicCAS(&owner[keys[i] % 8], 0, i + 1);
}
