// A thread a pair of a token: the angle's sine and cosine once, for all heads.
//
// launch: {"kernels": [{"entry": "rope_interleaved", "grid": ["ceil_div(pairs, 64)", "tokens"], "block": [64], "args": ["x", "angle", "out", "heads", "x_2", "pairs"]}]}
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void rope_interleaved(const T* x, const T* angle, T* out, long long heads, long long parts, long long pairs) {
  const long long pair = blockIdx.x * 64ll + threadIdx.x, token = blockIdx.y;
  if (pair >= pairs) return;
  float sine, cosine;
  sincosf(static_cast<float>(angle[token * pairs + pair]), &sine, &cosine);  //~ fast: __sincosf(static_cast<float>(angle[token * pairs + pair]), &sine, &cosine);
  for (long long head = 0; head < heads; ++head) {
    const long long row = token * heads + head, at = row * 2 * pairs + pair;
    const T* in = x + row * parts * pairs + pair;
    const float a = static_cast<float>(in[0]), b = static_cast<float>(in[pairs]);
    out[at] = T(a * cosine - b * sine);
    out[at + pairs] = T(a * sine + b * cosine);  //~ own: out[at + pairs] = T(static_cast<float>(out[at]) * sine + b * cosine);
  }
}
