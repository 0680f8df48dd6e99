// What the forward pass saved: rstd[t] = 1 / sqrt(mean over h of x[t, h]^2 + 1e-6)
#include "assay/reference.cuh"

using T = ASSAY_T;

// One thread a row, or a warp whose lanes share its elements.
__global__ void save_rstd(const T* x, Out<float>* rstd, int64 tokens, int64 hidden) {
  const int64 token = row_index();
  if (token >= tokens) return;
  const T* row = x + token * hidden;
  Real squares = 0;
  for (int64 h = lane_index(); h < hidden; h += lane_count())
    squares += Real(row[h]) * Real(row[h]);
  squares = sum_of_lanes(squares);
  if (lane_index() == 0) rstd[token] = rsqrt(squares / Real(hidden) + Real(1e-6f));
}
