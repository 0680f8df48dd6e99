// y[i, j] = sum over l <= j of x[i, l]
#include "assay/reference.cuh"

using T = ASSAY_T;

// One thread a row, or a warp whose lanes have a part of its columns each.
__global__ void cumsum(const T* x, Out<T>* y, int64 rows, int64 columns) {
  const int64 row = row_index();
  if (row >= rows) return;
  const int64 part = (columns + lane_count() - 1) / lane_count();
  const int64 begin = lane_index() * part;
  const int64 end = begin + part < columns ? begin + part : columns;
  Real sum = 0;
  if (lane_count() > 1) {
    for (int64 j = begin; j < end; ++j) sum += Real(x[row * columns + j]);
    sum = sum_of_lanes_before(sum);
  }
  for (int64 j = begin; j < end; ++j) {
    sum += Real(x[row * columns + j]);
    y[row * columns + j] = sum;
  }
}
