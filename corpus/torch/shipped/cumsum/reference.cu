// cumsum: Running sums of each row.
//
// Lowered from PyTorch; the comments quote the lines that it came from.
#include "assay/reference.cuh"

using T = ASSAY_T;

__global__ void cumsum_kernel(const T* x, Real* cumsum, int64 rows, int64 columns) {
  const int64 i0 = thread_index();
  if (i0 >= rows) return;
  Real cumsum_so_far = 0;
  for (int64 k = 0; k < columns; ++k) {
    cumsum_so_far = cumsum_so_far + Real(x[i0 * columns + k]);
    cumsum[i0 * columns + k] = cumsum_so_far;
  }
}

__global__ void y_kernel(const Real* cumsum, Out<T>* y, int64 rows, int64 columns) {
  const int64 element = thread_index();
  if (element >= columns * rows) return;
  const int64 i0 = element / columns;
  const int64 i1 = element % columns;
  y[i0 * columns + i1] = cumsum[i0 * columns + i1];
}
