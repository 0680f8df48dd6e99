// rms_norm_backward: Gradients of an RMS norm whose rstd was saved.
//
// Lowered from PyTorch; the comments quote the lines that it came from.
#include "assay/reference.cuh"

using T = ASSAY_T;

__global__ void grad_x_kernel(const T* x, const T* weight, const T* grad_out, const float* rstd,
                              Out<T>* grad_x, int64 tokens, int64 hidden) {
  const int64 i0 = thread_index();
  if (i0 >= tokens) return;
  // 75: return (r * (g * w - a * (r * r * dot))).to(x.dtype), (g * a * r).sum(0).to(x.dtype)
  const Real mul_3 = Real(rstd[i0]) * Real(rstd[i0]);
  // 74: dot = (g * w * a).mean(-1, keepdim=True)
  Real mean_sum = 0;
  for (int64 k = 0; k < hidden; ++k) {
    const Real mul = Real(grad_out[i0 * hidden + k]) * Real(weight[k]);
    const Real mul_1 = mul * Real(x[i0 * hidden + k]);
    mean_sum += mul_1;
  }
  const Real mean = average(mean_sum, Real(int64(hidden)));
  // 75: return (r * (g * w - a * (r * r * dot))).to(x.dtype), (g * a * r).sum(0).to(x.dtype)
  const Real mul_4 = mul_3 * mean;
  for (int64 i1 = 0; i1 < hidden; ++i1) {
    // 75: return (r * (g * w - a * (r * r * dot))).to(x.dtype), (g * a * r).sum(0).to(x.dtype)
    const Real mul_2 = Real(grad_out[i0 * hidden + i1]) * Real(weight[i1]);
    const Real mul_5 = Real(x[i0 * hidden + i1]) * mul_4;
    const Real sub = mul_2 - mul_5;
    const Real mul_6 = Real(rstd[i0]) * sub;
    grad_x[i0 * hidden + i1] = mul_6;
  }
}

__global__ void grad_weight_kernel(const T* x, const T* grad_out, const float* rstd,
                                   Out<T>* grad_weight, int64 tokens, int64 hidden) {
  const int64 i = thread_index();
  if (i >= hidden) return;
  // 75: return (r * (g * w - a * (r * r * dot))).to(x.dtype), (g * a * r).sum(0).to(x.dtype)
  Real sum_1 = 0;
  for (int64 k = 0; k < tokens; ++k) {
    const Real mul_7 = Real(grad_out[k * hidden + i]) * Real(x[k * hidden + i]);
    const Real mul_8 = mul_7 * Real(rstd[k]);
    sum_1 += mul_8;
  }
  grad_weight[i] = sum_1;
}
