// y[i, j] = sum over l <= j of x[i, l]
#include "assay/reference.cuh"

using T = ASSAY_T;

// One thread a row, or a warp whose lanes have a stretch of its columns each.
__global__ void cumsum(const T* x, Out<T>* y, int64 rows, int64 columns) {
  const int64 row = row_index();
  if (row >= rows) return;
  const int64 stretch = (columns + lane_count() - 1) / lane_count();
  const int64 first = lane_index() * stretch;
  const int64 end = first + stretch < columns ? first + stretch : columns;
  x += row * columns;
  y += row * columns;
  const bool alone = lane_count() == 1;
  Real before = 0;
  if (!alone) {
    for (int64 j = first; j < end; ++j) before += Real(x[j]);
    before = sum_of_lanes_before(before);
  }
  // What comes before is one term: added to each of the stretch, small ones would be lost in it one by one.
  Real sum = 0;
  for (int64 j = first; j < end; ++j) {
    sum += Real(x[j]);
    y[j] = alone ? sum : before + sum;
  }
}
