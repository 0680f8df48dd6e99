// y[i] = x[i] / (1 + exp(-x[i]))
#include "assay/reference.cuh"

using T = ASSAY_T;

// One thread an element.
__global__ void silu(const T* x, Out<T>* y, int64 n) {
  const int64 i = thread_index();
  if (i >= n) return;
  const Real value = x[i];
  y[i] = value / (Real(1) + exp(-value));
}
