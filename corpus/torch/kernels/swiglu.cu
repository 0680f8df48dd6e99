// Two elements a thread.
//
// launch: {"kernels": [{"entry": "swiglu", "grid": ["ceil_div(tokens * hidden, 256)"], "block": [128], "args": ["gate", "up", "out", "tokens", "hidden"]}]}
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float silu(float g) { return g / (1.0f + __expf(-g)); }

extern "C" __global__ void swiglu(const T* gate, const T* up, T* out, long long tokens, long long hidden) {
  const long long n = tokens * hidden, first = (blockIdx.x * 128ll + threadIdx.x) * 2;
  for (long long i = first; i < first + 2 && i < n; ++i)
    out[i] = T(silu(static_cast<float>(gate[i])) * static_cast<float>(up[i]));  //~ swapped: out[i] = T(static_cast<float>(gate[i]) * silu(static_cast<float>(up[i])));
}
