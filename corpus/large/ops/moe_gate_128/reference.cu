// logits[t, e] = sum over h of x[t, h] * weight[e, h]
// expert[t]    = the `chosen` experts with the largest logits[t], largest first: the judge chooses
// share[t, k]  = exp(logits[t, expert[t, k]]) / sum over j of exp(logits[t, expert[t, j]])
#include "assay/reference.cuh"

using T = ASSAY_T;

// One thread a logit.
__global__ void score(const T* x, const T* weight, Real* score, Out<double>* logits, int64 tokens,
                      int64 experts, int64 hidden) {
  const int64 i = thread_index();
  if (i >= tokens * experts) return;
  const T* token = x + i / experts * hidden;
  const T* expert = weight + i % experts * hidden;
  Real sum = 0;
  for (int64 h = 0; h < hidden; ++h) sum += Real(token[h]) * Real(expert[h]);
  logits[i] = score[i] = sum.settled();
}

// One thread a token.
__global__ void shares(const Real* score, const int* expert, Out<float>* share, int64 tokens,
                       int64 experts, int64 chosen) {
  const int64 token = thread_index();
  if (token >= tokens) return;
  const auto logit = [&](int64 k) { return score[token * experts + expert[token * chosen + k]]; };
  Real largest = logit(0);
  for (int64 k = 1; k < chosen; ++k) largest = max(largest, logit(k));
  Real sum = 0;
  for (int64 k = 0; k < chosen; ++k) sum += exp(logit(k) - largest);
  for (int64 k = 0; k < chosen; ++k) share[token * chosen + k] = exp(logit(k) - largest) / sum;
}
