__device__ __noinline__ int* make(int v, int* p) { for (int i = 0; i < 4; ++i) p[i] = v + i; return p; }
extern "C" __global__ void k(const int* x, int* y) {
  int a[4]; int* p = make(threadIdx.x, a);
  y[threadIdx.x] = p[x[threadIdx.x]];
}
