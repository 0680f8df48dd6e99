// out[index[t]] += src[t], f32. Few rows that take many tokens each: blocks that look for the tokens of one row and add them up
// in registers. Otherwise persistent blocks take 32 tokens at a time, join neighbours of the same row, and add by atomics.

constexpr int kThreads = 256;
constexpr int kList = 4096;     // tokens found before their sum is taken
constexpr int kRun = 32;        // tokens of a piece of work
constexpr int kAddThreads = 128;

// Zeros for the atomics to add to.
extern "C" __global__ void __launch_bounds__(kThreads) clear(float* __restrict__ out, long long rows, long long hidden) {
  const long long elements = rows * hidden;
  const long long vectors = elements / 4;
  float4* to = reinterpret_cast<float4*>(out);
  for (long long i = static_cast<long long>(blockIdx.x) * kThreads + threadIdx.x; i < vectors; i += static_cast<long long>(gridDim.x) * kThreads)
    to[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  if (blockIdx.x == 0 && threadIdx.x < elements % 4) out[vectors * 4 + threadIdx.x] = 0.0f;
}

// A block a row and 256 columns.
extern "C" __global__ void __launch_bounds__(kThreads) gather(const float* __restrict__ src, const long long* __restrict__ index,
                                                              float* __restrict__ out, int tokens, int hidden) {
  __shared__ int list[kList];
  __shared__ int found;
  const int row = blockIdx.x, lane = threadIdx.x & 31;
  const int column = blockIdx.y * kThreads + threadIdx.x;
  if (threadIdx.x == 0) found = 0;
  __syncthreads();
  float sum = 0.0f;
  for (int base = 0; base < tokens; base += kThreads) {
    const int t = base + threadIdx.x;
    const bool mine = t < tokens && index[t] == row;
    const unsigned which = __ballot_sync(0xffffffffu, mine);
    int at = 0;
    if (lane == 0 && which != 0) at = atomicAdd(&found, __popc(which));
    at = __shfl_sync(0xffffffffu, at, 0) + __popc(which & ((1u << lane) - 1u));
    if (mine) list[at] = t;
    __syncthreads();
    const int n = found;
    const bool drain = n > kList - kThreads || base + kThreads >= tokens;
    if (drain) {
      if (column < hidden)
        for (int i = 0; i < n; ++i) sum += src[static_cast<long long>(list[i]) * hidden + column];
    }
    __syncthreads();
    if (drain && threadIdx.x == 0) found = 0;
    __syncthreads();
  }
  if (column < hidden) out[static_cast<long long>(row) * hidden + column] = sum;
}

template <int kWidth>
struct Columns {
  float v[kWidth];
};

template <int kWidth>
__device__ __forceinline__ Columns<kWidth> load(const float* at) {
  Columns<kWidth> c;
  if constexpr (kWidth == 4) {
    const float4 four = *reinterpret_cast<const float4*>(at);
    c.v[0] = four.x;
    c.v[1] = four.y;
    c.v[2] = four.z;
    c.v[3] = four.w;
  } else {
    c.v[0] = *at;
  }
  return c;
}

// Pieces of 32 tokens and 128 or 512 columns.
template <int kWidth>
__global__ void __launch_bounds__(kAddThreads) add(const float* __restrict__ src, const long long* __restrict__ index, float* out,
                                                   int tokens, int hidden) {
  __shared__ int rows[kRun];
  const int slices = (hidden + kAddThreads * kWidth - 1) / (kAddThreads * kWidth);
  const long long pieces = static_cast<long long>((tokens + kRun - 1) / kRun) * slices;
  for (long long piece = blockIdx.x; piece < pieces; piece += gridDim.x) {
    const int t0 = static_cast<int>(piece / slices) * kRun;
    const int column = (static_cast<int>(piece % slices) * kAddThreads + static_cast<int>(threadIdx.x)) * kWidth;
    const int n = tokens - t0 < kRun ? tokens - t0 : kRun;
    __syncthreads();
    if (threadIdx.x < n) rows[threadIdx.x] = static_cast<int>(index[t0 + threadIdx.x]);
    __syncthreads();
    if (column >= hidden) continue;
    Columns<kWidth> sum = {};
    for (int i = 0; i < n; ++i) {
      const long long from = static_cast<long long>(t0 + i) * hidden + column;
      const Columns<kWidth> next = load<kWidth>(src + from);
#pragma unroll
      for (int k = 0; k < kWidth; ++k) sum.v[k] += next.v[k];
      if (i + 1 < n && rows[i + 1] == rows[i]) continue;
      float* to = out + static_cast<long long>(rows[i]) * hidden + column;
#pragma unroll
      for (int k = 0; k < kWidth; ++k) {
        atomicAdd(to + k, sum.v[k]);
        sum.v[k] = 0.0f;
      }
    }
  }
}
