// o[b, i] = sum over j of p[j] * v[b, j], p = softmax over j of cap(scale * dot(q[b, i], k[b, j]))
#include "assay/reference.cuh"

using T = ASSAY_T;

// A warp a query: lanes share the keys, then the columns. `scores` holds a row for each query,
// `shares` what each lane has.
__global__ void attention(const T* q, const T* k, const T* v, float scale, float softcap,
                          int causal, Real* scores, Real* shares, Out<T>* o, int64 heads,
                          int64 queries, int64 keys, int64 dim) {
  const int64 row = row_index();
  const int64 lane = lane_index();
  if (row >= heads * queries) return;
  const int64 head = row / queries;
  // Aligned to the end: the last query sees all keys.
  const int64 visible = causal ? keys - queries + row % queries + 1 : keys;
  const int64 all_lanes = lane_count();
  const int64 lanes = visible < all_lanes ? visible : all_lanes;  // that have keys
  Real* s = scores + row * keys;
  Real* of_lane = shares + row * 64;
  Real largest = 0;
  for (int64 j = lane; j < visible; j += all_lanes) {
    Real dot = 0;
    for (int64 c = 0; c < dim; ++c)
      dot += Real(q[row * dim + c]) * Real(k[(head * keys + j) * dim + c]);
    Real score = dot * Real(scale);
    if (softcap > 0) score = Real(softcap) * tanh(score / Real(softcap));
    // Kernels in powers of two keep scores multiplied by log2(e), which rounds them once more.
    score = may_rescale(score);
    s[j] = score;
    largest = j == lane ? score : max(largest, score);
  }
  of_lane[lane] = largest;
  sync_row();
  for (int64 l = 0; l < lanes; ++l) largest = l == 0 ? of_lane[0] : max(largest, of_lane[l]);
  Real share = 0;
  for (int64 j = lane; j < visible; j += all_lanes) {
    s[j] = exp(s[j] - largest);
    share += s[j];
  }
  of_lane[32 + lane] = share;
  sync_row();
  Real sum = 0;
  for (int64 l = 0; l < lanes; ++l) sum += of_lane[32 + l];
  for (int64 c = lane; c < dim; c += all_lanes) {
    Real value = 0;
    // Tensor cores multiply T by T, so the probabilities may be rounded: by flash kernels as they are, by
    // those that store them once they are normalised. The sum above is not rounded by either.
    for (int64 j = 0; j < visible; ++j) {
      value += may_round_to<T>(s[j], sum) * Real(v[(head * keys + j) * dim + c]);
    }
    o[row * dim + c] = value / sum;
  }
}
