// c[i, j] = sum over l of a[i, l] * b[l, j]
#include "assay/reference.cuh"

using T = ASSAY_T;

// One thread an element, or a warp whose lanes share the terms.
__global__ void gemm(const T* a, const T* b, Out<T>* c, int64 m, int64 n, int64 k) {
  const int64 element = row_index();
  if (element >= m * n) return;
  const int64 i = element / n;
  const int64 j = element % n;
  Real sum = 0;
  for (int64 l = lane_index(); l < k; l += lane_count())
    sum += Real(a[i * k + l]) * Real(b[l * n + j]);
  sum = sum_of_lanes(sum);
  if (lane_index() == 0) c[element] = sum;
}
