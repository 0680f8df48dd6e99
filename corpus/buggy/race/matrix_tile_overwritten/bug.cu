#include <cuda_fp16.h>
extern "C" __global__ void k(const __half* x, unsigned* y) {
  __shared__ __align__(16) __half s[128];
  int t = threadIdx.x;
  unsigned acc = 0;
  for (int i = 0; i < 4; ++i) {
    reinterpret_cast<unsigned*>(s)[t] = reinterpret_cast<const unsigned*>(x)[i * 64 + t];  // BUG: data_race
    __syncthreads();
    unsigned addr = static_cast<unsigned>(__cvta_generic_to_shared(s + (t % 8 + t / 32 * 8) * 8)), r;
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r) : "r"(addr) : "memory");  // OTHER
    acc ^= r;
    asm volatile("");
  }
  y[t] = acc;
}
