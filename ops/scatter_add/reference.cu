// out[r, h] = sum over the t with index[t] = r of src[t, h]
#include "assay/reference.cuh"

using T = ASSAY_T;

// One thread a column: rows of src in order.
__global__ void add_columns(const T* src, const int64* index, Real* sums, int64 tokens,
                            int64 hidden) {
  const int64 h = thread_index();
  if (h >= hidden) return;
  for (int64 t = 0; t < tokens; ++t) sums[index[t] * hidden + h] += Real(src[t * hidden + h]);
}

__global__ void store(const Real* sums, Out<T>* out, int64 rows, int64 hidden) {
  const int64 i = thread_index();
  if (i < rows * hidden) out[i] = sums[i];
}
