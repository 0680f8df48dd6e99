// Each element of reference.cu by itself, which looks for its tokens. Terms of a gradient that is 0 are 0.
#include "assay/reference.cuh"

using T = ASSAY_T;

// One thread an element, or a warp whose lanes share the tokens.
__global__ void table_element(const T* grad_out, const int64* ids, const T* table, const T* weight,
                              float eps, Out<T>* grad_table, int64 tokens, int64 hidden,
                              int64 vocab) {
  const int64 i = row_index();
  if (i >= vocab * hidden) return;
  const int64 row = i / hidden;
  const int64 h = i % hidden;
  const T* x = table + row * hidden;
  Real s = 0;
  bool known = false;
  Real sum = 0;
  for (int64 token = lane_index(); token < tokens; token += lane_count()) {
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
  sum = sum_of_lanes(sum);
  if (lane_index() == 0) grad_table[i] = sum;
}

// A warp whose lanes share the tokens of a column; or as many columns as a block has threads, which share the row of each
// token.
__global__ void weight_element(const T* grad_out, const int64* ids, const T* table, float eps,
                               Out<T>* grad_weight, int64 tokens, int64 hidden) {
  const int64 h = row_index();
  const bool shared = lane_count() == 1;
  if (!shared && h >= hidden) return;
  const int64 columns = shared ? blockDim.y : 1;
  const int64 begin = shared ? h - threadIdx.y : h;
  const int64 end = begin + columns < hidden ? begin + columns : hidden;
  const int64 first_term = shared ? threadIdx.y : 0;
  Real sum = 0;
  // Of as many tokens at once each thread looks for one with a gradient; then all of the block go through those together, or
  // each goes on with its own.
  for (int64 first = 0; first < tokens; first += shared ? columns : lane_count()) {
    const int64 mine = first + (shared ? threadIdx.y : lane_index());
    bool any = false;
    for (int64 c = begin; mine < tokens && c < end && !any; ++c)
      any = !(Real(grad_out[mine * hidden + c]) == Real(0));
    unsigned which = shared ? rows_where(any) : any;
    for (int64 token = shared ? first : mine; which != 0; which >>= 1, ++token) {
      if ((which & 1u) == 0) continue;
      const T* x = table + ids[token] * hidden;
      Real squares = 0;
      for (int64 k = first_term; k < hidden; k += columns) squares += Real(x[k]) * Real(x[k]);
      if (shared) squares = sum_of_rows(squares);
      if (h >= hidden) continue;
      const Real g = grad_out[token * hidden + h];
      if (g == Real(0)) continue;
      sum += g * Real(x[h]) * rsqrt(average(squares, Real(hidden)) + Real(eps));
    }
  }
  sum = sum_of_lanes(sum);
  if (h < hidden && lane_index() == 0) grad_weight[h] = sum;
}
