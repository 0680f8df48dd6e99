// y[t, h] = x[t, h] / sqrt(mean over h of x[t, h]^2 + eps) * weight[h]
#include "assay/reference.cuh"

using T = ASSAY_T;

// One thread a row, or a warp whose lanes share its elements.
__global__ void rms_norm(const T* x, const T* weight, float eps, Out<T>* y, int64 tokens,
                         int64 hidden) {
  const int64 token = row_index();
  if (token >= tokens) return;
  const int64 lane = lane_index(), lanes = lane_count();
  const T* row = x + token * hidden;
  Real squares = 0;
  for (int64 h = lane; h < hidden; h += lanes) squares += Real(row[h]) * Real(row[h]);
  squares = sum_of_lanes(squares);
  const Real scale = rsqrt(average(squares, Real(hidden)) + Real(eps));
  for (int64 h = lane; h < hidden; h += lanes)
    y[token * hidden + h] = Real(row[h]) * scale * Real(weight[h]);
}
