// Virtual functions, structs by value, cub::BlockReduce, dynamic shared memory.
#include <cstdio>
#include <cub/cub.cuh>
struct Big {
  int a[10];
  double d;
};
__constant__ float table[4] = {1, 2, 3, 4};
__device__ int counter = 5;
__device__ __noinline__ int fact(int n) { return n < 2 ? 1 : n * fact(n - 1); }
struct Base {
  __device__ virtual int f(int) = 0;
};
struct D1 : Base {
  __device__ int f(int x) override { return x + 1; }
};
struct D2 : Base {
  __device__ int f(int x) override { return x * 2; }
};
__device__ __noinline__ Big mk(Big b, int i) {
  b.a[i] = 3;
  return b;
}
extern __shared__ float dyn[];
__global__ void k(float* x, Big b, int n) {
  typedef cub::BlockReduce<float, 128> BR;
  __shared__ typename BR::TempStorage t;
  float s = BR(t).Sum(x[threadIdx.x]);
  if (threadIdx.x == 0) x[0] = s + table[n & 3] + fact(n);
  D1 d1;
  D2 d2;
  Base* p = n & 1 ? (Base*)&d1 : (Base*)&d2;
  x[1] = p->f(n);
  Big c = mk(b, n);
  x[2] = c.a[n] + c.d;
  dyn[n] = x[3];
  __syncthreads();
  x[4] = dyn[n + 1];
  printf("%d %f\n", n, s);
  atomicAdd(&counter, 1);
  switch (n) {
    case 0:
      x[5] = 1;
      break;
    case 1:
      x[6] = expf(s);
      break;
    case 2:
      x[7] = 2;
      break;
    case 3:
      x[8] = sinf(s);
      break;
    case 4:
      x[9] = 4;
      break;
    case 7:
      x[3] = 3;
  }
}
