// layer_norm: Layer normalisation.
//
// Lowered from PyTorch; the comments quote the lines that it came from.
#include "assay/reference.cuh"

using T = ASSAY_T;

__global__ void y_kernel(const T* x, const T* weight, const T* bias, float eps, Out<T>* y,
                         int64 tokens, int64 hidden) {
  const int64 i0 = thread_index();
  if (i0 >= tokens) return;
  // 47: mean = wide.mean(-1, keepdim=True)
  Real mean_sum = 0;
  for (int64 k = 0; k < hidden; ++k) {
    mean_sum += Real(x[i0 * hidden + k]);
  }
  const Real mean = average(mean_sum, Real(int64(hidden)));
  // 48: variance = (wide - mean).square().mean(-1, keepdim=True)
  Real mean_1_sum = 0;
  for (int64 k_2 = 0; k_2 < hidden; ++k_2) {
    const Real sub = Real(x[i0 * hidden + k_2]) - mean;
    const Real square = sub * sub;
    mean_1_sum += square;
  }
  const Real mean_1 = average(mean_1_sum, Real(int64(hidden)));
  // 49: return ((wide - mean) * torch.rsqrt(variance + eps) * weight.float() + bias.float()).to(x.dtype)
  const Real add = mean_1 + Real(eps);
  const Real rsqrt_value = rsqrt(add);
  for (int64 i1 = 0; i1 < hidden; ++i1) {
    const Real add_1 = affine(Real(x[i0 * hidden + i1]), mean, Real(weight[i1]) * rsqrt_value, Real(bias[i1]));
    y[i0 * hidden + i1] = add_1;
  }
}
