// rms_norm: RMS normalisation.
//
// Lowered from PyTorch; the comments quote the lines that it came from.
#include "assay/reference.cuh"

using T = ASSAY_T;

__global__ void y_kernel(const T* x, const T* weight, float eps, Out<T>* y, int64 tokens,
                         int64 hidden) {
  const int64 i0 = thread_index();
  if (i0 >= tokens) return;
  // 59: return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps) * weight.float()).to(x.dtype)
  Real mean_sum = 0;
  for (int64 k = 0; k < hidden; ++k) {
    const Real square = Real(x[i0 * hidden + k]) * Real(x[i0 * hidden + k]);
    mean_sum += square;
  }
  const Real mean = average(mean_sum, Real(int64(hidden)));
  const Real add = mean + Real(eps);
  const Real rsqrt_value = rsqrt(add);
  for (int64 i1 = 0; i1 < hidden; ++i1) {
    const Real mul = Real(x[i0 * hidden + i1]) * rsqrt_value;
    const Real mul_1 = mul * Real(weight[i1]);
    y[i0 * hidden + i1] = mul_1;
  }
}
