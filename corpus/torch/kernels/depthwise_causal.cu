// An element a thread; what lies before and behind the row is zero.
//
// launch: {"kernels": [{"entry": "depthwise_causal", "grid": ["ceil_div(batch * channels * (length + 4 - weight_2), 128)"], "block": [128], "args": ["x", "weight", "out", "batch", "channels", "length", "weight_2"]}]}
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void depthwise_causal(const T* x, const T* weight, T* out, long long batch, long long channels,
                                            long long length, long long taps) {
  const long long outs = length + 4 - taps, i = blockIdx.x * 128ll + threadIdx.x;
  if (i >= batch * channels * outs) return;
  const long long at = i % outs, row = i / outs, channel = row % channels;
  float sum = 0;
  for (long long tap = 0; tap < taps; ++tap) {
    const long long place = at + tap - 3;
    if (place < 0 || place >= length) continue;  //~ across: if (row * length + place < 0 || place >= length) continue;
    sum = fmaf(static_cast<float>(x[row * length + place]), static_cast<float>(weight[channel * taps + tap]), sum);
  }
  out[i] = T(sum / (1.0f + expf(-sum)));
}
