#include <cuda_fp16.h>
extern "C" __global__ void k(const __half* a, const __half* b, float* y) {
  __shared__ __align__(16) __half s[16 * 16], sb[8 * 16];
  int t = threadIdx.x;
  for (int i = t; i < 8 * 16; i += 32) { s[i] = a[i]; sb[i] = b[i]; }
  __syncwarp();
  unsigned r[4], q[2];
  unsigned pa = (unsigned)__cvta_generic_to_shared(s + (t % 16) * 16 + t / 16 * 8);
  unsigned pb = (unsigned)__cvta_generic_to_shared(sb + (t % 8) * 16 + (t / 8 & 1) * 8);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(pa) : "memory");
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];" : "=r"(q[0]), "=r"(q[1]) : "r"(pb) : "memory");
  float c[4] = {0, 0, 0, 0};
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
    : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "r"(q[0]), "r"(q[1]));
  y[t / 4 * 8 + t % 4 * 2] = c[0];
  y[t / 4 * 8 + t % 4 * 2 + 1] = c[1];
}
