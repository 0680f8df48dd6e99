// cross_entropy: Cross-entropy of each token.
//
// Lowered from PyTorch; the comments quote the lines that it came from.
#include "assay/reference.cuh"

using T = ASSAY_T;

__global__ void loss_kernel(const T* logits, const int64* targets, Out<float>* loss, int64 tokens,
                            int64 vocab) {
  const int64 i = thread_index();
  if (i >= tokens) return;
  // 85: return torch.logsumexp(wide, -1) - wide.gather(1, targets[:, None]).squeeze(1)
  Real logsumexp_sum = 0;
  Real logsumexp_max = Real(-assay::infinity());
  for (int64 k_2 = 0; k_2 < vocab; ++k_2) {
    logsumexp_max = max(logsumexp_max, Real(logits[i * vocab + k_2]));
  }
  for (int64 k = 0; k < vocab; ++k) {
    const Real logsumexp_exp = exp(Real(logits[i * vocab + k]) - logsumexp_max);
    logsumexp_sum += logsumexp_exp;
  }
  const Real logsumexp = log(logsumexp_sum) + logsumexp_max;
  const int64 unsqueeze_at = wrapped(int64(targets[i]), vocab);
  const Real sub = logsumexp - Real(logits[i * vocab + unsqueeze_at]);
  loss[i] = sub;
}
