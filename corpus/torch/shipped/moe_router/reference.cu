// moe_router: The best experts of each token, and their shares.
//
// Lowered from PyTorch; the comments quote the lines that it came from.
#include "assay/reference.cuh"

using T = ASSAY_T;

__global__ void mm_kernel(const T* x, const T* weight, Real* mm, int64 tokens, int64 hidden,
                          int64 experts) {
  const int64 element = thread_index();
  if (element >= experts * tokens) return;
  const int64 i0 = element / experts;
  const int64 i1 = element % experts;
  // 123: best, which = torch.topk(x.float() @ weight.float().T, like.shape[0], dim=-1)
  Real mm_2 = 0;
  for (int64 k = 0; k < hidden; ++k) {
    mm_2 += Real(x[i0 * hidden + k]) * Real(weight[i1 * hidden + k]);
  }
  mm[i0 * experts + i1] = mm_2;
}

__global__ void share_kernel(const int* expert, const Real* mm, Out<float>* share, int64 chosen,
                             int64 tokens, int64 experts) {
  const int64 i0 = thread_index();
  if (i0 >= tokens) return;
  // 124: return which.to(torch.int32), torch.softmax(best, -1)
  Real softmax_max = Real(-assay::infinity());
  for (int64 k = 0; k < chosen; ++k) {
    const int64 expert_at_2 = wrapped(int64(expert[i0 * chosen + k]), experts);
    softmax_max = max(softmax_max, mm[i0 * experts + expert_at_2]);
  }
  Real softmax_sum = 0;
  for (int64 k_2 = 0; k_2 < chosen; ++k_2) {
    const int64 expert_at_3 = wrapped(int64(expert[i0 * chosen + k_2]), experts);
    const Real softmax_shifted_2 = mm[i0 * experts + expert_at_3].settled() - softmax_max;
    const Real softmax_exp_2 = exp(softmax_shifted_2);
    softmax_sum += softmax_exp_2;
  }
  for (int64 i1 = 0; i1 < chosen; ++i1) {
    const int64 expert_at = wrapped(int64(expert[i0 * chosen + i1]), experts);
    const Real softmax_shifted = mm[i0 * experts + expert_at].settled() - softmax_max;
    const Real softmax_exp = exp(softmax_shifted);
    const Real softmax = softmax_exp / softmax_sum;
    share[i0 * chosen + i1] = softmax;
  }
}

__global__ void expert_scores_kernel(const Real* mm, Out<double>* expert_scores, int64 tokens,
                                     int64 experts) {
  const int64 element = thread_index();
  if (element >= experts * tokens) return;
  const int64 i0 = element / experts;
  const int64 i1 = element % experts;
  expert_scores[i0 * experts + i1] = mm[i0 * experts + i1];
}
