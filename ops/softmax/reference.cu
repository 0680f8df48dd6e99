// y[i, j] = exp(x[i, j] - max) / sum over j of exp(x[i, j] - max)
#include "assay/reference.cuh"

using T = ASSAY_T;

// One thread a row.
__global__ void softmax(const T* x, Out<T>* y, int64 rows, int64 columns) {
  const int64 i = thread_index();
  if (i >= rows) return;
  const T* row = x + i * columns;
  Real largest = row[0];
  for (int64 j = 1; j < columns; ++j) largest = max(largest, Real(row[j]));
  Real sum = 0;
  for (int64 j = 0; j < columns; ++j) sum += exp(Real(row[j]) - largest);
  for (int64 j = 0; j < columns; ++j) y[i * columns + j] = exp(Real(row[j]) - largest) / sum;
}
