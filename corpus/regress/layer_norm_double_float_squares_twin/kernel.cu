// A warp a row up to 1024, a block of 256 beyond. Variance by Welford and Chan.
constexpr unsigned kAll = 0xffffffffu;

struct Moments {
  float count, mean, squares;
};

// Chan, Golub and LeVeque.
__device__ __forceinline__ Moments join(Moments a, Moments b) {
  const float count = a.count + b.count;
  if (b.count == 0.0f) return a;
  if (a.count == 0.0f) return b;
  const float share = b.count / count;
  const float delta = b.mean - a.mean;
  return {count, fmaf(delta, share, a.mean), a.squares + b.squares + delta * (delta * (a.count * share))};
}

__device__ __forceinline__ Moments join_lanes(Moments mine) {
#pragma unroll
  for (int offset = 1; offset < 32; offset *= 2) {
    Moments other{__shfl_xor_sync(kAll, mine.count, offset), __shfl_xor_sync(kAll, mine.mean, offset),
                  __shfl_xor_sync(kAll, mine.squares, offset)};
    // The same order on both sides, so that all lanes agree to the bit.
    mine = threadIdx.x & offset ? join(other, mine) : join(mine, other);
  }
  return mine;
}

__device__ __forceinline__ Moments welford(const float* __restrict__ row, int first, int stride, int hidden) {
  if (first >= hidden) return {0.0f, 0.0f, 0.0f};
  Moments m{1.0f, row[first], 0.0f};
  for (int h = first + stride; h < hidden; h += stride) {
    const float delta = row[h] - m.mean;
    m.count += 1.0f;
    m.mean += delta / m.count;
    m.squares = fmaf(delta, row[h] - m.mean, m.squares);
  }
  return m;
}

extern "C" __global__ void narrow(const float* __restrict__ x, const float* __restrict__ weight,
                                  const float* __restrict__ bias, float eps, float* __restrict__ y, long long tokens,
                                  int hidden) {
  const long long token = static_cast<long long>(blockIdx.x) * 8 + threadIdx.x / 32;
  if (token >= tokens) return;
  const int lane = threadIdx.x % 32;
  const float* row = x + token * hidden;
  const Moments all = join_lanes(welford(row, lane, 32, hidden));
  const float scale = rsqrtf(all.squares / all.count + eps);
  for (int h = lane; h < hidden; h += 32)
    y[token * hidden + h] = fmaf((row[h] - all.mean) * scale, weight[h], bias[h]);
}

extern "C" __global__ void __launch_bounds__(256)
    wide(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias, float eps,
         float* __restrict__ y, int hidden) {
  __shared__ Moments parts[8];
  const long long token = blockIdx.x;
  const float* row = x + token * hidden;
  const Moments mine = join_lanes(welford(row, threadIdx.x, 256, hidden));
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = mine;
  __syncthreads();
  // Every thread joins them in the same order: a tree over the eight.
  const Moments left = join(join(parts[0], parts[1]), join(parts[2], parts[3]));
  const Moments right = join(join(parts[4], parts[5]), join(parts[6], parts[7]));
  const Moments all = join(left, right);
  const float scale = rsqrtf(all.squares / all.count + eps);
  for (int h = threadIdx.x; h < hidden; h += 256)
    y[token * hidden + h] = fmaf((row[h] - all.mean) * scale, weight[h], bias[h]);
}
