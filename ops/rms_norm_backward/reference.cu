// For g = grad_out[t] and x = x[t]:
//   dot(t)         = mean over k of g[k] * weight[k] * x[k]
//   grad_x[t, h]   = rstd[t] * (g[h] * weight[h] - x[h] * rstd[t]^2 * dot(t))
//   grad_weight[h] = sum over t of g[h] * x[h] * rstd[t]
#include "assay/reference.cuh"

using T = ASSAY_T;

// One thread a row, or a warp whose lanes share its elements.
__global__ void rows(const T* x, const T* weight, const T* grad_out, const float* rstd,
                     Out<T>* grad_x, int64 tokens, int64 hidden) {
  const int64 token = row_index();
  if (token >= tokens) return;
  const int64 lane = lane_index(), lanes = lane_count();
  const T* row = x + token * hidden;
  const T* g = grad_out + token * hidden;
  Real dot = 0;
  for (int64 h = lane; h < hidden; h += lanes) dot += Real(g[h]) * Real(weight[h]) * Real(row[h]);
  dot = sum_of_lanes(dot);
  const Real scale = rstd[token];
  const Real slope = scale * scale * average(dot, Real(hidden));
  for (int64 h = lane; h < hidden; h += lanes)
    grad_x[token * hidden + h] = scale * (Real(g[h]) * Real(weight[h]) - Real(row[h]) * slope);
}

// One thread a column, or a warp whose lanes share the tokens.
__global__ void columns(const T* x, const T* grad_out, const float* rstd, Out<T>* grad_weight,
                        int64 tokens, int64 hidden) {
  const int64 h = row_index();
  if (h >= hidden) return;
  Real sum = 0;
  for (int64 token = lane_index(); token < tokens; token += lane_count())
    sum += Real(grad_out[token * hidden + h]) * Real(x[token * hidden + h]) * Real(rstd[token]);
  sum = sum_of_lanes(sum);
  if (lane_index() == 0) grad_weight[h] = sum;
}
