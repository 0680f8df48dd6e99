// y[i] = sum over j of x[i, j]
#include "assay/reference.cuh"

using T = ASSAY_T;

// One thread a row.
__global__ void row_sum(const T* x, Out<T>* y, int64 rows, int64 columns) {
  const int64 row = thread_index();
  if (row >= rows) return;
  Real sum = 0;
  for (int64 j = 0; j < columns; ++j) sum += Real(x[row * columns + j]);
  y[row] = sum;
}
