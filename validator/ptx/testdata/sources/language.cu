// Recursion, function pointers, printf, assert, malloc, initialised variables, inline assembly with
// scopes of its own.
#include <cuda_runtime.h>

#include <cassert>
#include <cstdio>
#include <cuda/atomic>
struct __align__(16) Big {
  int a[10];
  double d;
  char c;
};
__constant__ Big cb;
__constant__ double tbl[5] = {1, 2, 3.5, -4, 1e300};
__device__ int arr[3][4] = {{1, 2}, {3}, {4, 5, 6, 7}};
__device__ float fz[100];
__device__ int* ptr = &arr[1][2];
__device__ const char* names[2] = {"ab", "cde"};
struct Mx {
  char t;
  int* p;
  short s;
};
__device__ Mx mx = {1, &arr[0][3], -2};
__device__ __noinline__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
typedef int (*fp)(int);
__device__ int inc(int x) { return x + 1; }
__device__ int dbl(int x) { return 2 * x; }
__device__ fp fns[2] = {inc, dbl};
__device__ __noinline__ Big mk(Big b, int i) {
  b.a[i] = 7;
  return b;
}
__global__ void __launch_bounds__(256, 2) k(Big b, int* o, int n) {
  assert(n > 0);
  o[0] = fib(n);
  o[1] = fns[n & 1](n);
  Big r = mk(b, n);
  o[2] = r.a[n] + cb.a[n];
  o[3] = (int)tbl[n];
  printf("%s %d\n", names[n & 1], o[3]);
  int* q = (int*)malloc(16);
  q[n] = 3;
  o[4] = q[1];
  free(q);
  o[5] = *ptr;
  o[6] = *mx.p + mx.s;
  o[7] = arr[n][1];
  fz[n] = 3;
  cuda::atomic_ref<int, cuda::thread_scope_device> a(o[9]);
  a.fetch_add(3, cuda::memory_order_release);
  while (a.load(cuda::memory_order_acquire) != 4);
  a.store(5, cuda::memory_order_relaxed);
  a.fetch_max(4);
  o[8] = a.compare_exchange_strong(n, 5);
  switch (n) {
    case 0:
      o[10] = 1;
      break;
    case 1:
      o[11] = b.a[3];
      break;
    case 2:
      o[12] = 2;
      break;
    case 3:
      o[13] = 9;
      break;
    case 4:
      o[14] = 4;
      break;
    case 5:
      o[15] = 5;
      break;
    case 7:
      o[13] = 3;
  }
}
__global__ void asmk(int* x) {
  int r;
  asm volatile(
      "{\n .reg .pred p;\n .reg .b32 t;\n setp.ne.s32 p, %1, 0;\n @p bra L1;\n mov.b32 t, 3;\n bra "
      "L2;\nL1: mov.b32 t, 4;\nL2: add.s32 %0, t, 1;\n}"
      : "=r"(r)
      : "r"(x[0]));
  x[1] = r;
  asm volatile(
      "{\n .reg .pred p;\n setp.ne.s32 p, %1, 0;\n @p bra L1;\n L1: selp.b32 %0, 1, 2, p;\n}"
      : "=r"(r)
      : "r"(x[2]));
  x[3] = r;
  unsigned s = (unsigned)__cvta_generic_to_shared(x);
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(r) : "r"(s));
  x[4] = r;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(s), "l"(x));
  asm volatile("cp.async.commit_group; cp.async.wait_group 0;");
  asm("mov.u32 %0, %%laneid;" : "=r"(r));
  x[5] = r;
}
