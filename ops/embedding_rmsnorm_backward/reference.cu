// Forward: y[t, h] = x[h] * scale(t) * weight[h], with x = table[ids[t]] and
//   scale(t) = 1 / sqrt(mean(x^2) + eps)
// Backward, for g = grad_out[t]:
//   grad_weight[h] = sum over t of g[h] * x[h] * scale(t)
//   grad_x[t, h]   = scale(t) * (g[h] * weight[h] - x[h] * scale(t)^2 * dot(t))
//   dot(t)         = mean over k of g[k] * weight[k] * x[k]
//   grad_table[v]  = sum over the t with ids[t] = v of grad_x[t]
#include "assay/reference.cuh"

using T = ASSAY_T;

// One thread a token, or a warp whose lanes share its row: the two numbers that the whole row shares.
__global__ void row_statistics(const T* grad_out, const int64* ids, const T* table, const T* weight,
                               float eps, Real* scale, Real* slope, int64 tokens, int64 hidden) {
  const int64 token = row_index();
  if (token >= tokens) return;
  const T* g = grad_out + token * hidden;
  const T* x = table + ids[token] * hidden;
  Real squares = 0;
  Real dot = 0;
  for (int64 h = lane_index(); h < hidden; h += lane_count()) {
    squares += Real(x[h]) * Real(x[h]);
    dot += Real(g[h]) * Real(weight[h]) * Real(x[h]);
  }
  squares = sum_of_lanes(squares);
  dot = sum_of_lanes(dot);
  if (lane_index() > 0) return;
  const Real s = rsqrt(average(squares, Real(hidden)) + Real(eps));
  scale[token] = s;
  slope[token] = s * s * average(dot, Real(hidden));
}

// One thread a column: tokens in order, so that gradients of equal ids add up without atomics. Or a warp whose lanes share
// the tokens, each with sums of its own.
__global__ void add_columns(const T* grad_out, const int64* ids, const T* table, const T* weight,
                            const Real* scale, const Real* slope, Real* sums, Out<T>* grad_weight,
                            int64 tokens, int64 hidden, int64 vocab) {
  const int64 h = row_index();
  if (h >= hidden) return;
  Real* const own = sums + lane_index() * vocab * hidden;
  Real weight_sum = 0;
  for (int64 token = lane_index(); token < tokens; token += lane_count()) {
    const int64 id = ids[token];
    const Real g = grad_out[token * hidden + h];
    const Real x = table[id * hidden + h];
    weight_sum += g * x * scale[token];
    own[id * hidden + h] += scale[token] * (g * Real(weight[h]) - x * slope[token]);
  }
  weight_sum = sum_of_lanes(weight_sum);
  if (lane_index() == 0) grad_weight[h] = weight_sum;
}

__global__ void store_table(const Real* sums, Out<T>* grad_table, int64 vocab, int64 hidden) {
  const int64 i = row_index();
  if (i >= vocab * hidden) return;
  const Real sum = sum_of_lanes(sums[lane_index() * vocab * hidden + i]);
  if (lane_index() == 0) grad_table[i] = sum;
}
