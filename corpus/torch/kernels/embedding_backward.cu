// A block a row of the table: no atomics, in the order of the tokens.
//
// launch: {"kernels": [{"entry": "embedding_backward", "grid": ["vocab"], "block": [64], "args": ["grad", "ids", "out", "tokens", "hidden"]}]}
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void embedding_backward(const T* grad, const long long* ids, T* out, long long tokens, long long hidden) {
  for (long long j = threadIdx.x; j < hidden; j += 64) {
    float sum = 0;
    for (long long t = 0; t < tokens; ++t)
      if (ids[t] == blockIdx.x) sum += static_cast<float>(grad[t * hidden + j]);  //~ last: if (ids[t] == blockIdx.x) sum = static_cast<float>(grad[t * hidden + j]);
    out[blockIdx.x * hidden + j] = T(sum);
  }
}
