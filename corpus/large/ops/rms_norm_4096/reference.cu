// y[t, h] = x[t, h] / sqrt(mean over h of x[t, h]^2 + eps) * weight[h]
#include "assay/reference.cuh"

using T = ASSAY_T;

// One thread a row.
__global__ void rms_norm(const T* x, const T* weight, float eps, Out<T>* y, int64 tokens,
                         int64 hidden) {
  const int64 token = thread_index();
  if (token >= tokens) return;
  const T* row = x + token * hidden;
  Real squares = 0;
  for (int64 h = 0; h < hidden; ++h) squares += Real(row[h]) * Real(row[h]);
  const Real scale = rsqrt(squares / Real(hidden) + Real(eps));
  for (int64 h = 0; h < hidden; ++h) y[token * hidden + h] = Real(row[h]) * scale * Real(weight[h]);
}
