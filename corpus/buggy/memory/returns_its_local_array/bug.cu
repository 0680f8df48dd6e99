__device__ __noinline__ int* make(int v) { int a[4]; int* volatile p = a; for (int i = 0; i < 4; ++i) p[i] = v + i; return p; }
extern "C" __global__ void k(const int* x, int* y) {
  int* p = make(threadIdx.x);
  y[threadIdx.x] = p[x[threadIdx.x]];  // BUG: out_of_bounds
}
