// A warp a row up to 1024, a block of 256 beyond: there one pass, both sums in double-float arithmetic.
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

// high + low, about 48 bits: E[x^2] - mean^2 may cancel half of them and is still good to f32.
struct Twofold {
  float high, low;
};

__device__ __forceinline__ Twofold two_sum(float a, float b) {
  const float sum = a + b;
  const float part = sum - a;
  return {sum, (a - (sum - part)) + (b - part)};
}

__device__ __forceinline__ Twofold two_product(float a, float b) {
  const float product = a * b;
  return {product, fmaf(a, b, -product)};
}

__device__ __forceinline__ Twofold add(Twofold a, Twofold b) {
  const Twofold high = two_sum(a.high, b.high);
  return two_sum(high.high, high.low + a.low + b.low);
}

__device__ __forceinline__ Twofold multiply(Twofold a, Twofold b) {
  const Twofold product = two_product(a.high, b.high);
  return two_sum(product.high, product.low + a.high * b.low + a.low * b.high);
}

// a / n for a small integer n.
__device__ __forceinline__ Twofold divide(Twofold a, float n) {
  const float quotient = a.high / n;
  return two_sum(quotient, (fmaf(-quotient, n, a.high) + a.low) / n);
}

__device__ __forceinline__ Twofold add_lanes(Twofold mine) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2)
    mine = add(mine, {__shfl_xor_sync(kAll, mine.high, offset), __shfl_xor_sync(kAll, mine.low, offset)});
  return mine;
}

extern "C" __global__ void __launch_bounds__(256)
    wide(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias, float eps,
         float* __restrict__ y, int hidden) {
  __shared__ Twofold sums[8], squares[8];
  const long long token = blockIdx.x;
  const float* row = x + token * hidden;
  Twofold sum{0.0f, 0.0f}, square{0.0f, 0.0f};
  for (int h = threadIdx.x; h < hidden; h += 256) {
    const float value = row[h];
    sum = add(sum, {value, 0.0f});
    square = add(square, two_product(value, value));
  }
  sum = add_lanes(sum);
  square = add_lanes(square);
  if (threadIdx.x % 32 == 0) {
    sums[threadIdx.x / 32] = sum;
    squares[threadIdx.x / 32] = square;
  }
  __syncthreads();
  sum = sums[0];
  square = squares[0];
  for (int w = 1; w < 8; ++w) {
    sum = add(sum, sums[w]);
    square = add(square, squares[w]);
  }
  const float count = static_cast<float>(hidden);
  const Twofold mean = divide(sum, count);
  const Twofold of_squares = divide(square, count);
  const Twofold of_mean = multiply(mean, mean);
  const Twofold variance = add(of_squares, {-of_mean.high, -of_mean.low});
  const float scale = rsqrtf(fmaxf(variance.high, 0.0f) + eps);
  for (int h = threadIdx.x; h < hidden; h += 256)
    y[token * hidden + h] = fmaf((row[h] - mean.high - mean.low) * scale, weight[h], bias[h]);
}
