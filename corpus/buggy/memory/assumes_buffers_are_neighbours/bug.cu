// "One base pointer, offsets for the rest": saves registers, and leaves the allocation.
extern "C" __global__ void add(const float* x, const float* y, float* out) {
  long long to_y = (reinterpret_cast<long long>(y) - reinterpret_cast<long long>(x)) / 4;
  float a = x[threadIdx.x];
  float b = x[threadIdx.x + to_y];  // BUG: wrong_provenance
  out[threadIdx.x] = a + b;
}
