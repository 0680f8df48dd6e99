// loss[t] = log(sum over v of exp(logits[t, v])) - logits[t, targets[t]]
#include "assay/reference.cuh"

using T = ASSAY_T;

// One thread a token; the largest logit is taken out, so that nothing overflows.
__global__ void cross_entropy(const T* logits, const int64* targets, Out<float>* loss, int64 tokens,
                              int64 vocab) {
  const int64 token = thread_index();
  if (token >= tokens) return;
  const T* row = logits + token * vocab;
  Real largest = row[0];
  for (int64 v = 1; v < vocab; ++v) largest = max(largest, Real(row[v]));
  Real sum = 0;
  for (int64 v = 0; v < vocab; ++v) sum += exp(Real(row[v]) - largest);
  loss[token] = log(sum) + largest - Real(row[targets[token]]);
}
