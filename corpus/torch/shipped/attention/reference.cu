// attention: Attention with an optional causal mask and softcap.
//
// Lowered from PyTorch; the comments quote the lines that it came from.
#include "assay/reference.cuh"

using T = ASSAY_T;

__global__ void bmm_kernel(const T* q, const T* k, Real* bmm, int64 heads, int64 queries,
                           int64 dim, int64 keys) {
  const int64 element = thread_index();
  if (element >= heads * keys * queries) return;
  const int64 i0 = element / (keys * queries);
  const int64 i1 = element / keys % queries;
  const int64 i2 = element % keys;
  // 140: scores = q.float() @ k.float().transpose(-1, -2) * scale
  Real bmm_2 = 0;
  for (int64 k_2 = 0; k_2 < dim; ++k_2) {
    bmm_2 += Real(q[(i0 * queries + i1) * dim + k_2]) * Real(k[(i0 * keys + i2) * dim + k_2]);
  }
  bmm[(i0 * queries + i1) * keys + i2] = bmm_2;
}

__global__ void softmax_exp_kernel(float scale, float softcap, int causal, const Real* bmm,
                                   Real* softmax_exp, int64 heads, int64 queries, int64 keys) {
  const int64 element = thread_index();
  if (element >= heads * queries) return;
  const int64 i0 = element / queries;
  const int64 i1 = element % queries;
  // 143: seen = (j <= i + (k.shape[1] - q.shape[1])) | (causal == 0)
  const int64 add = int64(i1) + int64(keys - queries);
  const Decision eq = Decision(int64(causal) == int64(0));
  // 141: scores = torch.where(softcap > 0, softcap * torch.tanh(scores / softcap), scores)
  const Decision gt = less(Real(0), Real(softcap));
  // 144: return torch.softmax(scores.masked_fill(~seen, float("-inf")), -1).to(q.dtype) @ v
  Real softmax_max = Real(-assay::infinity());
  for (int64 k_2 = 0; k_2 < keys; ++k_2) {
    // 143: seen = (j <= i + (k.shape[1] - q.shape[1])) | (causal == 0)
    const Decision le_2 = Decision(int64(k_2) <= add);
    const Decision bitwise_or_2 = le_2 || eq;
    // 144: return torch.softmax(scores.masked_fill(~seen, float("-inf")), -1).to(q.dtype) @ v
    const Decision bitwise_not_2 = !bitwise_or_2;
    // 140: scores = q.float() @ k.float().transpose(-1, -2) * scale
    const Real mul_2 = bmm[(i0 * queries + i1) * keys + k_2] * Real(scale);
    // 141: scores = torch.where(softcap > 0, softcap * torch.tanh(scores / softcap), scores)
    const Real div_2 = mul_2 / Real(softcap);
    const Real tanh_value_2 = tanh(div_2);
    const Real mul_1_2 = Real(softcap) * tanh_value_2;
    const Real where_2 = select(gt, mul_1_2, mul_2);
    // 144: return torch.softmax(scores.masked_fill(~seen, float("-inf")), -1).to(q.dtype) @ v
    const Real where_1_2 = select(bitwise_not_2, Real(-assay::infinity()), where_2);
    const Real softmax_score_2 = may_rescale(where_1_2);
    softmax_max = max(softmax_max, softmax_score_2);
  }
  for (int64 i2 = 0; i2 < keys; ++i2) {
    const Decision le = Decision(int64(i2) <= add);
    const Decision bitwise_or = le || eq;
    // 144: return torch.softmax(scores.masked_fill(~seen, float("-inf")), -1).to(q.dtype) @ v
    const Decision bitwise_not = !bitwise_or;
    // 140: scores = q.float() @ k.float().transpose(-1, -2) * scale
    const Real mul = bmm[(i0 * queries + i1) * keys + i2] * Real(scale);
    // 141: scores = torch.where(softcap > 0, softcap * torch.tanh(scores / softcap), scores)
    const Real div = mul / Real(softcap);
    const Real tanh_value = tanh(div);
    const Real mul_1 = Real(softcap) * tanh_value;
    const Real where = select(gt, mul_1, mul);
    // 144: return torch.softmax(scores.masked_fill(~seen, float("-inf")), -1).to(q.dtype) @ v
    const Real where_1 = select(bitwise_not, Real(-assay::infinity()), where);
    const Real softmax_score = may_rescale(where_1);
    const Real softmax_shifted = softmax_score - softmax_max;
    const Real softmax_exp_2 = exp(softmax_shifted);
    softmax_exp[(i0 * queries + i1) * keys + i2] = softmax_exp_2;
  }
}

__global__ void o_kernel(const T* v, const Real* softmax_exp, Out<T>* o, int64 heads,
                         int64 queries, int64 dim, int64 keys) {
  const int64 element = thread_index();
  if (element >= heads * queries) return;
  const int64 i0 = element / queries;
  const int64 i1 = element % queries;
  // 144: return torch.softmax(scores.masked_fill(~seen, float("-inf")), -1).to(q.dtype) @ v
  Real softmax_sum = 0;
  for (int64 k_3 = 0; k_3 < keys; ++k_3) {
    softmax_sum += softmax_exp[(i0 * queries + i1) * keys + k_3];
  }
  for (int64 i2 = 0; i2 < dim; ++i2) {
    // 144: return torch.softmax(scores.masked_fill(~seen, float("-inf")), -1).to(q.dtype) @ v
    Real bmm_1 = 0;
    for (int64 k_2 = 0; k_2 < keys; ++k_2) {
      bmm_1 += may_round_to<T>(softmax_exp[(i0 * queries + i1) * keys + k_2], softmax_sum) * Real(v[(i0 * keys + k_2) * dim + i2]);
    }
    const Real bmm_1_2 = bmm_1 / softmax_sum;
    const Real bmm_1_3 = bmm_1_2;
    o[(i0 * queries + i1) * dim + i2] = bmm_1_3;
  }
}
