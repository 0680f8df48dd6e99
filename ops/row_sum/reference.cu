// y[i] = sum over j of x[i, j]
#include "assay/reference.cuh"

using T = ASSAY_T;

// One thread a row, or a warp whose lanes share the columns.
__global__ void row_sum(const T* x, Out<T>* y, int64 rows, int64 columns) {
  const int64 row = row_index();
  if (row >= rows) return;
  Real sum = 0;
  for (int64 j = lane_index(); j < columns; j += lane_count()) sum += Real(x[row * columns + j]);
  sum = sum_of_lanes(sum);
  if (lane_index() == 0) y[row] = sum;
}
