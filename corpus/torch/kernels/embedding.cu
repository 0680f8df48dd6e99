// A block a token.
//
// launch: {"kernels": [{"entry": "embedding", "grid": ["tokens"], "block": [64], "args": ["ids", "table", "out", "hidden"]}]}
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void embedding(const long long* ids, const T* table, T* out, long long hidden) {
  const long long from = ids[blockIdx.x] * hidden;
  for (long long j = threadIdx.x; j < hidden; j += 64) out[blockIdx.x * hidden + j] = table[from + j];  //~ tail: for (long long j = threadIdx.x; j < hidden / 2 * 2; j += 64) out[blockIdx.x * hidden + j] = table[from + j];
}
