// y[t, h] = (x[t, h] - mean) / sqrt(variance + eps) * weight[h] + bias[h], with the row's mean and
// (biased) variance
#include "assay/reference.cuh"

using T = ASSAY_T;

// One thread a row, or a warp whose lanes share its elements, in two passes: the variance is that of the deviations from the mean.
__global__ void layer_norm(const T* x, const T* weight, const T* bias, float eps, Out<T>* y,
                           int64 tokens, int64 hidden) {
  const int64 token = row_index();
  if (token >= tokens) return;
  const int64 lane = lane_index(), lanes = lane_count();
  const T* row = x + token * hidden;
  Real sum = 0;
  for (int64 h = lane; h < hidden; h += lanes) sum += Real(row[h]);
  sum = sum_of_lanes(sum);
  const Real mean = average(sum, Real(hidden));
  Real squares = 0;
  for (int64 h = lane; h < hidden; h += lanes) {
    const Real deviation = Real(row[h]) - mean;
    squares += deviation * deviation;
  }
  squares = sum_of_lanes(squares);
  const Real scale = rsqrt(squares / Real(hidden) + Real(eps));
  for (int64 h = lane; h < hidden; h += lanes) {
    y[token * hidden + h] =
        affine(Real(row[h]), mean, scale * Real(weight[h]), Real(bias[h]));
  }
}
