// embedding_rmsnorm_backward: Gradients of rms_norm(table[ids], weight).
//
// Lowered from PyTorch; the comments quote the lines that it came from.
#include "assay/reference.cuh"

using T = ASSAY_T;

__global__ void mean_sum_kernel(const int64* ids, const T* table, Real* mean_sum, int64 tokens,
                                int64 hidden, int64 vocab) {
  const int64 i = thread_index();
  if (i >= tokens) return;
  // 110: scale = torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
  Real mean_sum_2 = 0;
  for (int64 k = 0; k < hidden; ++k) {
    const int64 ids_at = wrapped(int64(ids[i]), vocab);
    const Real square = Real(table[ids_at * hidden + k]) * Real(table[ids_at * hidden + k]);
    mean_sum_2 += square;
  }
  mean_sum[i] = mean_sum_2;
}

__global__ void mean_1_sum_kernel(const T* grad_out, const int64* ids, const T* table,
                                  const T* weight, Real* mean_1_sum, int64 tokens, int64 hidden,
                                  int64 vocab) {
  const int64 i = thread_index();
  if (i >= tokens) return;
  // 111: slope = scale * scale * (g * w * x).mean(-1, keepdim=True)
  Real mean_1_sum_2 = 0;
  for (int64 k = 0; k < hidden; ++k) {
    const Real mul_1 = Real(grad_out[i * hidden + k]) * Real(weight[k]);
    const int64 ids_at = wrapped(int64(ids[i]), vocab);
    const Real mul_2 = mul_1 * Real(table[ids_at * hidden + k]);
    mean_1_sum_2 += mul_2;
  }
  mean_1_sum[i] = mean_1_sum_2;
}

__global__ void grad_table_kernel(const T* grad_out, const int64* ids, const T* table,
                                  const T* weight, float eps, const Real* mean_sum,
                                  const Real* mean_1_sum, Out<T>* grad_table, int64 tokens,
                                  int64 hidden, int64 vocab) {
  const int64 element = thread_index();
  if (element >= hidden * vocab) return;
  const int64 i0 = element / hidden;
  const int64 i1 = element % hidden;
  // 113: sums = torch.zeros_like(table, dtype=torch.float32).index_add(0, ids, rows)
  Real index_add = Real(0);
  for (int64 k = 0; k < tokens; ++k) {
    // 110: scale = torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
    const Real mean = average(mean_sum[k], Real(int64(hidden)));
    const Real add = mean + Real(eps);
    const Real rsqrt_value = rsqrt(add);
    // 112: rows = scale * (g * w - x * slope)
    const Real mul_4 = Real(grad_out[k * hidden + i1]) * Real(weight[i1]);
    const int64 ids_at = wrapped(int64(ids[k]), vocab);
    // 111: slope = scale * scale * (g * w * x).mean(-1, keepdim=True)
    const Real mul = rsqrt_value * rsqrt_value;
    const Real mean_1 = average(mean_1_sum[k], Real(int64(hidden)));
    const Real mul_3 = mul * mean_1;
    // 112: rows = scale * (g * w - x * slope)
    const Real mul_5 = Real(table[ids_at * hidden + i1]) * mul_3;
    const Real sub = mul_4 - mul_5;
    const Real mul_6 = rsqrt_value * sub;
    if (wrapped(int64(ids[k]), vocab) == i0) {
      index_add += mul_6;
    }
  }
  grad_table[i0 * hidden + i1] = index_add;
}

__global__ void grad_weight_kernel(const T* grad_out, const int64* ids, const T* table, float eps,
                                   const Real* mean_sum, Out<T>* grad_weight, int64 tokens,
                                   int64 hidden, int64 vocab) {
  const int64 i = thread_index();
  if (i >= hidden) return;
  // 114: return sums.to(table.dtype), (g * x * scale).sum(0).to(table.dtype)
  Real sum_1 = 0;
  for (int64 k = 0; k < tokens; ++k) {
    const int64 ids_at = wrapped(int64(ids[k]), vocab);
    const Real mul_7 = Real(grad_out[k * hidden + i]) * Real(table[ids_at * hidden + i]);
    // 110: scale = torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
    const Real mean = average(mean_sum[k], Real(int64(hidden)));
    const Real add = mean + Real(eps);
    const Real rsqrt_value = rsqrt(add);
    // 114: return sums.to(table.dtype), (g * x * scale).sum(0).to(table.dtype)
    const Real mul_8 = mul_7 * rsqrt_value;
    sum_1 += mul_8;
  }
  grad_weight[i] = sum_1;
}
