// Each element of reference.cu by itself, which looks for its tokens. Terms of a gradient that is 0 are 0.
#include "assay/reference.cuh"

using T = ASSAY_T;

// One thread an element.
__global__ void table_element(const T* grad_out, const int64* ids, const T* table, const T* weight,
                              float eps, Out<T>* grad_table, int64 tokens, int64 hidden,
                              int64 vocab) {
  const int64 i = thread_index();
  if (i >= vocab * hidden) return;
  const int64 row = i / hidden;
  const int64 h = i % hidden;
  const T* x = table + row * hidden;
  Real s = 0;
  bool known = false;
  Real sum = 0;
  for (int64 token = 0; token < tokens; ++token) {
    if (ids[token] != row) continue;
    const T* g = grad_out + token * hidden;
    Real dot = 0;
    bool any = false;
    for (int64 k = 0; k < hidden; ++k) {
      if (Real(g[k]) == Real(0)) continue;
      any = true;
      dot += Real(g[k]) * Real(weight[k]) * Real(x[k]);
    }
    if (!any) continue;
    if (!known) {
      Real squares = 0;
      for (int64 k = 0; k < hidden; ++k) squares += Real(x[k]) * Real(x[k]);
      s = rsqrt(average(squares, Real(hidden)) + Real(eps));
      known = true;
    }
    const Real slope = s * s * average(dot, Real(hidden));
    sum += s * (Real(g[h]) * Real(weight[h]) - Real(x[h]) * slope);
  }
  grad_table[i] = sum;
}

// One thread a column, or a warp whose lanes share the tokens.
__global__ void weight_element(const T* grad_out, const int64* ids, const T* table, float eps,
                               Out<T>* grad_weight, int64 tokens, int64 hidden) {
  const int64 h = row_index();
  if (h >= hidden) return;
  Real sum = 0;
  for (int64 token = lane_index(); token < tokens; token += lane_count()) {
    const Real g = grad_out[token * hidden + h];
    if (g == Real(0)) continue;
    const T* x = table + ids[token] * hidden;
    Real squares = 0;
    for (int64 k = 0; k < hidden; ++k) squares += Real(x[k]) * Real(x[k]);
    sum += g * Real(x[h]) * rsqrt(average(squares, Real(hidden)) + Real(eps));
  }
  sum = sum_of_lanes(sum);
  if (lane_index() == 0) grad_weight[h] = sum;
}
