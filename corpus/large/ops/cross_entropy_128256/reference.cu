// loss[t] = log(sum over v of exp(logits[t, v])) - logits[t, targets[t]]
#include "assay/reference.cuh"

using T = ASSAY_T;

// A warp a token, whose lanes share the classes; the largest logit is taken out, so that nothing overflows.
__global__ void cross_entropy(const T* logits, const int64* targets, Out<float>* loss, int64 tokens,
                              int64 vocab) {
  const int64 token = row_index();
  if (token >= tokens) return;
  const int64 lane = lane_index(), lanes = lane_count();
  const T* row = logits + token * vocab;
  Real largest = row[0];
  for (int64 v = lane; v < vocab; v += lanes) largest = max(largest, Real(row[v]));
  largest = max_of_lanes(largest);
  Real sum = 0;
  for (int64 v = lane; v < vocab; v += lanes) sum += exp(Real(row[v]) - largest);
  sum = sum_of_lanes(sum);
  if (lane == 0) loss[token] = log(sum) + largest - Real(row[targets[token]]);
}
