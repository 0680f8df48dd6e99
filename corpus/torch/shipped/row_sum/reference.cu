// row_sum: Sum of each row.
//
// Lowered from PyTorch; the comments quote the lines that it came from.
#include "assay/reference.cuh"

using T = ASSAY_T;

__global__ void y_kernel(const T* x, Out<T>* y, int64 rows, int64 columns) {
  const int64 i = thread_index();
  if (i >= rows) return;
  // 10: return x.float().sum(-1).to(x.dtype)
  Real sum_1 = 0;
  for (int64 k = 0; k < columns; ++k) {
    sum_1 += Real(x[i * columns + k]);
  }
  y[i] = sum_1;
}
