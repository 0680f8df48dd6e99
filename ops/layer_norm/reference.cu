// y[t, h] = (x[t, h] - mean) / sqrt(variance + eps) * weight[h] + bias[h], with the row's mean and
// (biased) variance
#include "assay/reference.cuh"

using T = ASSAY_T;

// One thread a row, in two passes: the variance is that of the deviations from the mean.
__global__ void layer_norm(const T* x, const T* weight, const T* bias, float eps, Out<T>* y,
                           int64 tokens, int64 hidden) {
  const int64 token = thread_index();
  if (token >= tokens) return;
  const T* row = x + token * hidden;
  Real sum = 0;
  for (int64 h = 0; h < hidden; ++h) sum += Real(row[h]);
  const Real mean = average(sum, Real(hidden));
  Real squares = 0;
  for (int64 h = 0; h < hidden; ++h) {
    const Real deviation = Real(row[h]) - mean;
    squares += deviation * deviation;
  }
  const Real scale = rsqrt(squares / Real(hidden) + Real(eps));
  for (int64 h = 0; h < hidden; ++h) {
    y[token * hidden + h] =
        affine(Real(row[h]), mean, scale * Real(weight[h]), Real(bias[h]));
  }
}
