__constant__ float table[32] = {1.0f, 2.0f};
extern "C" __global__ void apply(float* y) {
  y[threadIdx.x] = threadIdx.x == 0 ? 3.0f : table[threadIdx.x];
}
