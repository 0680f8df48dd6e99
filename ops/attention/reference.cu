// o[b, i] = sum over j of p[j] * v[b, j], p = softmax over j of cap(scale * dot(q[b, i], k[b, j]))
#include "assay/reference.cuh"

using T = ASSAY_T;

// One thread a query, or a warp where it has much to do: lanes share the keys, then the columns, or the keys again
// where columns are few. `scores` holds a row for each query.
__global__ void attention(const T* q, const T* k, const T* v, float scale, float softcap,
                          int causal, Real* scores, Out<T>* o, int64 heads, int64 queries,
                          int64 keys, int64 dim) {
  const int64 row = row_index();
  const int64 lane = lane_index();
  if (row >= heads * queries) return;
  const int64 head = row / queries;
  // Aligned to the end: the last query sees all keys.
  const int64 visible = causal ? keys - queries + row % queries + 1 : keys;
  const int64 lanes = lane_count();
  Real* s = scores + row * keys;
  Real largest = 0;
  // Lanes without a key take the last one, as another does.
  const int64 first = lane < visible ? lane : visible - 1;
  for (int64 j = first; j < visible; j += lanes) {
    Real dot = 0;
    for (int64 c = 0; c < dim; ++c)
      dot += Real(q[row * dim + c]) * Real(k[(head * keys + j) * dim + c]);
    Real score = dot * Real(scale);
    if (softcap > 0) score = Real(softcap) * tanh(score / Real(softcap));
    // Kernels in powers of two keep scores multiplied by log2(e), which rounds them once more.
    score = may_rescale(score);
    s[j] = score;
    largest = j == first ? score : max(largest, score);
  }
  largest = max_of_lanes(largest);
  Real sum = 0;
  for (int64 j = lane; j < visible; j += lanes) {
    s[j] = exp(s[j] - largest);
    sum += s[j];
  }
  sum = sum_of_lanes(sum);
  // Tensor cores multiply T by T, so the probabilities may be rounded: by flash kernels as they are, by
  // those that store them once they are normalised. The sum above is not rounded by either.
  for (int64 j = lane; j < visible; j += lanes) s[j] = may_round_to<T>(s[j], sum);
  sync_row();
  const bool by_keys = 2 * dim <= lanes;
  for (int64 c = by_keys ? 0 : lane; c < dim; c += by_keys ? 1 : lanes) {
    Real value = 0;
    for (int64 j = by_keys ? lane : 0; j < visible; j += by_keys ? lanes : 1)
      value += s[j] * Real(v[(head * keys + j) * dim + c]);
    if (by_keys) value = sum_of_lanes(value);
    if (!by_keys || lane == 0) o[row * dim + c] = value / sum;
  }
}
