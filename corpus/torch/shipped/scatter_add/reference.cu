// scatter_add: Rows added up by index.
//
// Lowered from PyTorch; the comments quote the lines that it came from.
#include "assay/reference.cuh"

using T = ASSAY_T;

__global__ void out_kernel(const T* src, const int64* index, Out<T>* out, int64 tokens,
                           int64 hidden, int64 rows) {
  const int64 element = thread_index();
  if (element >= hidden * rows) return;
  const int64 i0 = element / hidden;
  const int64 i1 = element % hidden;
  // 94: return torch.zeros_like(like, dtype=torch.float32).index_add(0, index, src.float()).to(src.dtype)
  Real index_add = Real(0);
  for (int64 k = 0; k < tokens; ++k) {
    if (wrapped(int64(index[k]), rows) == i0) {
      index_add += Real(src[k * hidden + i1]);
    }
  }
  out[i0 * hidden + i1] = index_add;
}
