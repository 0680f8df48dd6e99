// softmax: Softmax of each row.
//
// Lowered from PyTorch; the comments quote the lines that it came from.
#include "assay/reference.cuh"

using T = ASSAY_T;

__global__ void y_kernel(const T* x, Out<T>* y, int64 rows, int64 columns) {
  const int64 i0 = thread_index();
  if (i0 >= rows) return;
  // 19: return torch.softmax(x.float(), -1).to(x.dtype)
  Real softmax_max = Real(-assay::infinity());
  for (int64 k = 0; k < columns; ++k) {
    softmax_max = max(softmax_max, Real(x[i0 * columns + k]));
  }
  Real softmax_sum = 0;
  for (int64 k_2 = 0; k_2 < columns; ++k_2) {
    const Real softmax_shifted_2 = Real(x[i0 * columns + k_2]) - softmax_max;
    const Real softmax_exp_2 = exp(softmax_shifted_2);
    softmax_sum += softmax_exp_2;
  }
  for (int64 i1 = 0; i1 < columns; ++i1) {
    const Real softmax_shifted = Real(x[i0 * columns + i1]) - softmax_max;
    const Real softmax_exp = exp(softmax_shifted);
    const Real softmax = softmax_exp / softmax_sum;
    y[i0 * columns + i1] = softmax;
  }
}
