// Layer normalisation, f16. Up to 1024 elements: a warp a row in registers, groups of eight rows in
// turns. Longer: a block a row, which it fetches by a ticket; the row is kept in shared memory, the
// moments are those of threads, merged.
#include <cuda_fp16.h>

using T = __half;

constexpr int kThreads = 256;
constexpr int kWarps = 8;

__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

extern "C" __global__ void __launch_bounds__(256)
    layer_norm_warp(const T* __restrict__ x, const T* __restrict__ weight,
                    const T* __restrict__ bias, float eps, T* __restrict__ y, long long tokens,
                    long long hidden) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int length = static_cast<int>(hidden);
  const long long groups = (tokens + kWarps - 1) / kWarps;
  for (long long group = blockIdx.x; group < groups; group += gridDim.x) {
    const long long row = group * kWarps + warp;
    if (row >= tokens) continue;
    const T* from = x + row * hidden;
    T* to = y + row * hidden;
    float held[32];
    float sum = 0.0f;
#pragma unroll
    for (int e = 0; e < 32; ++e) {
      const int h = e * 32 + lane;
      held[e] = h < length ? __half2float(from[h]) : 0.0f;
      sum += held[e];
    }
    const float mean = warp_sum(sum) / length;
    float squares = 0.0f;
#pragma unroll
    for (int e = 0; e < 32; ++e) {
      const float deviation = e * 32 + lane < length ? held[e] - mean : 0.0f;
      squares += deviation * deviation;
    }
    const float scale = rsqrtf(warp_sum(squares) / length + eps);
#pragma unroll
    for (int e = 0; e < 32; ++e) {
      const int h = e * 32 + lane;
      if (h < length) {
        to[h] = __float2half((held[e] - mean) * scale * __half2float(weight[h]) +
                             __half2float(bias[h]));
      }
    }
  }
}

struct Moments {
  float count, mean, squares;  // squares: of the deviations from the mean
  __device__ __forceinline__ void merge(float n, float m, float s) {
    const float all = count + n;
    if (n == 0.0f) return;
    const float delta = m - mean, share = n / all;
    mean += delta * share;
    squares += s + delta * delta * count * share;
    count = all;
  }
};

struct Job {
  unsigned row;
  unsigned more;
};

template <int kItems>
struct alignas(kItems * sizeof(T)) Pack {
  T item[kItems];
};

extern "C" __global__ void layer_norm_reset(unsigned* ticket) { *ticket = 0; }

template <int kItems>
__global__ void __launch_bounds__(kThreads)
    layer_norm_block(const T* __restrict__ x, const T* __restrict__ weight,
                     const T* __restrict__ bias, float eps, T* __restrict__ y, unsigned* ticket,
                     long long tokens, long long hidden) {
  extern __shared__ __align__(16) unsigned char shared[];
  __shared__ Job job;
  const int length = static_cast<int>(hidden);
  Pack<kItems>* cache = reinterpret_cast<Pack<kItems>*>(shared);
  const int scratch_at = (length * static_cast<int>(sizeof(T)) + 15) / 16 * 16;
  float* means = reinterpret_cast<float*>(shared + scratch_at);
  float* squares = means + kWarps;
  float* counts = squares + kWarps;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int packs = length / kItems;
  const Pack<kItems>* weights = reinterpret_cast<const Pack<kItems>*>(weight);
  const Pack<kItems>* biases = reinterpret_cast<const Pack<kItems>*>(bias);
  while (true) {
    __syncthreads();  // nobody reads the last row's job and moments any more
    if (threadIdx.x == 0) {
      const unsigned number = atomicAdd(ticket, 1u);
      job.more = number < tokens;
      job.row = number;
    }
    __syncthreads();
    if (!job.more) break;
    const long long row = job.row;
    const Pack<kItems>* from = reinterpret_cast<const Pack<kItems>*>(x + row * hidden);
    Pack<kItems>* to = reinterpret_cast<Pack<kItems>*>(y + row * hidden);
    float sum = 0.0f, count = 0.0f;
    for (int i = threadIdx.x; i < packs; i += kThreads) {
      const Pack<kItems> pack = from[i];
      cache[i] = pack;  // read by this thread alone
#pragma unroll
      for (int e = 0; e < kItems; ++e) sum += __half2float(pack.item[e]);
      count += kItems;
    }
    Moments moments{count, count > 0.0f ? sum / count : 0.0f, 0.0f};
    for (int i = threadIdx.x; i < packs; i += kThreads) {
      const Pack<kItems> pack = cache[i];
#pragma unroll
      for (int e = 0; e < kItems; ++e) {
        const float deviation = __half2float(pack.item[e]) - moments.mean;
        moments.squares += deviation * deviation;
      }
    }
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) {
      const float n = __shfl_down_sync(0xffffffffu, moments.count, offset);
      const float m = __shfl_down_sync(0xffffffffu, moments.mean, offset);
      const float s = __shfl_down_sync(0xffffffffu, moments.squares, offset);
      moments.merge(n, m, s);
    }
    if (lane == 0) {
      counts[warp] = moments.count;
      means[warp] = moments.mean;
      squares[warp] = moments.squares;
    }
    __syncthreads();
    float mean = 0.0f, deviations = 0.0f;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) mean += means[w] * counts[w];
    mean /= length;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      const float delta = means[w] - mean;
      deviations += squares[w] + counts[w] * (delta * delta);
    }
    const float scale = rsqrtf(deviations / length + eps);
    for (int i = threadIdx.x; i < packs; i += kThreads) {
      Pack<kItems> pack = cache[i];
      const Pack<kItems> by = weights[i], plus = biases[i];
#pragma unroll
      for (int e = 0; e < kItems; ++e) {
        pack.item[e] = __float2half((__half2float(pack.item[e]) - mean) * scale *
                                        __half2float(by.item[e]) +
                                    __half2float(plus.item[e]));
      }
      to[i] = pack;
    }
  }
}
