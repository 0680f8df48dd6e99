// An element a thread; rows of odd length have the longer half in front.
//
// launch: {"kernels": [{"entry": "rope", "grid": ["ceil_div(batch * length * heads * dim, 128)"], "block": [128], "args": ["x", "cos_value", "sin_value", "out", "batch", "length", "heads", "dim"]}]}
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void rope(const T* x, const float* cosine, const float* sine, T* out, long long batch, long long length,
                                long long heads, long long dim) {
  const long long i = blockIdx.x * 128ll + threadIdx.x;
  if (i >= batch * length * heads * dim) return;
  const long long row = i / dim, at = row / heads % length, place = i % dim, half = dim / 2;
  const T* in = x + row * dim;
  const float other = place < dim - half ? -static_cast<float>(in[half + place]) : static_cast<float>(in[place - (dim - half)]);  //~ sign: const float other = place < dim - half ? static_cast<float>(in[half + place]) : static_cast<float>(in[place - (dim - half)]);
  const long long angle = at * dim + place;  //~ position: const long long angle = row % length * dim + place;
  out[i] = T(static_cast<float>(in[place]) * cosine[angle] + other * sine[angle]);
}
