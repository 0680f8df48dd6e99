// y[i, j] = sum over l <= j of x[i, l]
#include "assay/reference.cuh"

using T = ASSAY_T;

// One thread a row.
__global__ void cumsum(const T* x, Out<T>* y, int64 rows, int64 columns) {
  const int64 row = thread_index();
  if (row >= rows) return;
  Real sum = 0;
  for (int64 j = 0; j < columns; ++j) {
    sum += Real(x[row * columns + j]);
    y[row * columns + j] = sum;
  }
}
