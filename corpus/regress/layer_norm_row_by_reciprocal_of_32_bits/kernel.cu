// LayerNorm, f32: a warp a row finds mean and scale; a persistent flat kernel applies them, float4 at a time where
// rows allow it. The row of an element comes from a multiplication with a reciprocal, made once a thread.
// i / d by the high word of i * ceil(2^32 / d); what does not fit 32 bits is divided.
struct Divider {
  unsigned d, magic;
  bool wide;
  __device__ Divider(int by, long long count) : d(by), magic(0xffffffffu / by + 1), wide(count > 0xffffffffLL) {}
  __device__ __forceinline__ long long operator()(long long i) const {
    if (d == 1) return i;
    if (wide) return i / d;
    return __umulhi((unsigned)i, magic);
  }
};

__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
  for (int offset = 16; offset > 0; offset >>= 1) v += __shfl_xor_sync(0xffffffffu, v, offset);
  return v;
}

extern "C" __global__ void __launch_bounds__(256) statistics(const float* __restrict__ x, float eps,
                                                             float2* __restrict__ stats, long long tokens, int hidden) {
  const long long token = (long long)blockIdx.x * 8 + (threadIdx.x >> 5);
  if (token >= tokens) return;
  const int lane = threadIdx.x & 31;
  const float* row = x + token * hidden;
  float sum = 0.0f;
  for (int h = lane; h < hidden; h += 32) sum += row[h];
  const float mean = warp_sum(sum) / (float)hidden;
  float squares = 0.0f;
  for (int h = lane; h < hidden; h += 32) {
    const float d = row[h] - mean;
    squares = fmaf(d, d, squares);
  }
  const float scale = rsqrtf(warp_sum(squares) / (float)hidden + eps);
  if (lane == 0) stats[token] = make_float2(mean, scale);
}

__device__ __forceinline__ float one(float x, float2 s, float w, float b) { return (x - s.x) * s.y * w + b; }

template <int WIDTH>
__global__ void __launch_bounds__(256) apply(const float* __restrict__ x, const float* __restrict__ weight,
                                             const float* __restrict__ bias, const float2* __restrict__ stats,
                                             float* __restrict__ y, long long tokens, int hidden) {
  const int across = hidden / WIDTH;
  const long long count = tokens * across;
  const Divider divide(across, count);
  const long long step = (long long)gridDim.x * 256;
  for (long long i = (long long)blockIdx.x * 256 + threadIdx.x; i < count; i += step) {
    const long long row = divide(i);
    const int column = (int)(i - row * across);
    const float2 s = stats[row];
    if (WIDTH == 4) {
      const float4 v = reinterpret_cast<const float4*>(x)[i];
      const float4 w = reinterpret_cast<const float4*>(weight)[column];
      const float4 b = reinterpret_cast<const float4*>(bias)[column];
      reinterpret_cast<float4*>(y)[i] =
          make_float4(one(v.x, s, w.x, b.x), one(v.y, s, w.y, b.y), one(v.z, s, w.z, b.z), one(v.w, s, w.w, b.w));
    } else {
      y[i] = one(x[i], s, weight[column], bias[column]);
    }
  }
}
