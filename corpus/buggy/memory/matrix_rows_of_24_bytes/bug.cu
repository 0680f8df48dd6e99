#include <cuda_fp16.h>
extern "C" __global__ void k(const __half* x, unsigned* y) {
  const int pitch = 12;
  __shared__ __align__(16) __half s[8 * 16];
  int t = threadIdx.x;
  for (int i = t; i < 8 * pitch; i += 32) s[i] = x[i];
  __syncthreads();
  unsigned addr = static_cast<unsigned>(__cvta_generic_to_shared(s + (t % 8) * pitch));
  unsigned r;
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r) : "r"(addr) : "memory");  // BUG: misaligned
  y[t] = r;
}
