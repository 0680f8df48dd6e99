// out[r, h] = sum over the t with index[t] = r of src[t, h]
#include "assay/reference.cuh"

using T = ASSAY_T;

// One thread a column: rows of src in order. Or a warp whose lanes share them, each with sums of its own.
__global__ void add_columns(const T* src, const int64* index, Real* sums, int64 tokens,
                            int64 hidden, int64 rows) {
  const int64 h = row_index();
  if (h >= hidden) return;
  Real* const own = sums + lane_index() * rows * hidden;
  for (int64 t = lane_index(); t < tokens; t += lane_count())
    own[index[t] * hidden + h] += Real(src[t * hidden + h]);
}

__global__ void store(const Real* sums, Out<T>* out, int64 rows, int64 hidden) {
  const int64 i = row_index();
  if (i >= rows * hidden) return;
  const Real sum = sum_of_lanes(sums[lane_index() * rows * hidden + i]);
  if (lane_index() == 0) out[i] = sum;
}

// For parts: one thread an element, which looks for its rows of src, or a warp whose lanes share them.
__global__ void add_element(const T* src, const int64* index, Out<T>* out, int64 tokens,
                            int64 hidden, int64 rows) {
  const int64 i = row_index();
  if (i >= rows * hidden) return;
  const int64 row = i / hidden;
  const int64 h = i % hidden;
  Real sum = 0;
  for (int64 t = lane_index(); t < tokens; t += lane_count()) {
    if (index[t] == row) sum += Real(src[t * hidden + h]);
  }
  sum = sum_of_lanes(sum);
  if (lane_index() == 0) out[i] = sum;
}
