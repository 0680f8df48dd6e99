// gemm: Matrix product.
//
// Lowered from PyTorch; the comments quote the lines that it came from.
#include "assay/reference.cuh"

using T = ASSAY_T;

__global__ void c_kernel(const T* a, const T* b, Out<T>* c, int64 m, int64 k, int64 n) {
  const int64 element = thread_index();
  if (element >= m * n) return;
  const int64 i0 = element / n;
  const int64 i1 = element % n;
  // 37: return (a.float() @ b.float()).to(a.dtype)
  Real mm = 0;
  for (int64 k_2 = 0; k_2 < k; ++k_2) {
    mm += Real(a[i0 * k + k_2]) * Real(b[k_2 * n + i1]);
  }
  c[i0 * n + i1] = mm;
}
