// o[b] = sum over j of p[j] * v[page(b, j), j % 16], p = softmax over j of dot(q[b], k[page(b, j), j % 16]) / sqrt(dim)
#include "assay/reference.cuh"

using T = ASSAY_T;

// A warp a sequence, whose lanes share the keys. `scores` holds a row for each.
__global__ void decode_paged(const T* q, const T* k, const T* v, const int64* table, Real* scores,
                             Out<T>* o, int64 batch, int64 blocks, int64 dim) {
  const int64 row = row_index();
  if (row >= batch) return;
  const int64 lane = lane_index(), lanes = lane_count(), keys = 16 * blocks;
  Real* s = scores + row * keys;
  Real largest = 0;
  // Lanes without a key take the last one, as another does.
  const int64 first = lane < keys ? lane : keys - 1;
  for (int64 j = first; j < keys; j += lanes) {
    const int64 at = (table[row * blocks + j / 16] * 16 + j % 16) * dim;
    Real dot = 0;
    for (int64 c = 0; c < dim; ++c) dot += Real(q[row * dim + c]) * Real(k[at + c]);
    s[j] = may_rescale(dot / sqrt(Real(dim)));
    largest = j == first ? s[j] : max(largest, s[j]);
  }
  largest = max_of_lanes(largest);
  Real sum = 0;
  for (int64 j = lane; j < keys; j += lanes) {
    s[j] = exp(s[j] - largest);
    sum += s[j];
  }
  sum = sum_of_lanes(sum);
  for (int64 c = 0; c < dim; ++c) {
    Real value = 0;
    for (int64 j = lane; j < keys; j += lanes)
      value += s[j] * Real(v[(table[row * blocks + j / 16] * 16 + j % 16) * dim + c]);
    value = sum_of_lanes(value);
    if (lane == 0) o[row * dim + c] = value / sum;
  }
}
