__constant__ float table[32] = {1.0f, 2.0f};
extern "C" __global__ void apply(float* y) {
  float* t = const_cast<float*>(table);
  if (threadIdx.x == 0) *t = 3.0f;  // BUG: write_to_constant
  y[threadIdx.x] = table[threadIdx.x];
}
