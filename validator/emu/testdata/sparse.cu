// Compiled with: nvcc -ptx -arch=sm_90 -lineinfo sparse.cu
// Each block works on 4 KiB of each buffer, `stride` elements from the next block's.
extern "C" __global__ void sparse(const float* x, float* y, float* z, unsigned long long stride) {
  for (int k = 0; k < 4; ++k) {
    size_t i = blockIdx.x * stride + threadIdx.x + 256 * k;
    y[i] = x[i] + 1;
    z[i] += y[i];
  }
}

// Reads what nobody has written.
extern "C" __global__ void unwritten(const unsigned* x, unsigned* y) {
  y[threadIdx.x] = x[1024ull * 1024 * threadIdx.x];
}
