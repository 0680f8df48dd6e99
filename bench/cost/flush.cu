// Reads memory that nobody needs, so that caches hold nothing of what comes next and have nothing to
// write back.
extern "C" __global__ void flush(const uint4* memory, unsigned long long count, unsigned* never) {
  const unsigned long long threads = static_cast<unsigned long long>(gridDim.x) * blockDim.x;
  unsigned sum = 0;
  for (unsigned long long i = static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x;
       i < count; i += threads) {
    const uint4 value = memory[i];
    sum += value.x ^ value.y ^ value.z ^ value.w;
  }
  if (sum == 0x9e3779b9u) *never = sum;
}
