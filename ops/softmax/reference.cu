// y[i, j] = exp(x[i, j] - max) / sum over j of exp(x[i, j] - max)
#include "assay/reference.cuh"

using T = ASSAY_T;

// One thread a row, or a warp whose lanes share the columns.
__global__ void softmax(const T* x, Out<T>* y, int64 rows, int64 columns) {
  const int64 i = row_index();
  if (i >= rows) return;
  const int64 lane = lane_index(), lanes = lane_count();
  const T* row = x + i * columns;
  Real largest = row[0];
  for (int64 j = lane; j < columns; j += lanes) largest = max(largest, Real(row[j]));
  largest = max_of_lanes(largest);
  Real sum = 0;
  for (int64 j = lane; j < columns; j += lanes) sum += exp(Real(row[j]) - largest);
  sum = sum_of_lanes(sum);
  for (int64 j = lane; j < columns; j += lanes) y[i * columns + j] = exp(Real(row[j]) - largest) / sum;
}
