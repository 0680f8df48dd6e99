#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;


// Two ways: a warp a query, or, for decoding against a long cache, a warp for each 1024 keys, and a second kernel that joins them.
constexpr int kMostDim = 256;
constexpr int kChunk = 1024;
constexpr float kLog2e = 1.4426950408889634f;

struct State {
  float most, sum;
  float value[kMostDim / 32];
};

// Keys from begin to end for one query, by one warp; sum is this lane's.
__device__ __forceinline__ void scan_keys(State& s, const float* query, const T* __restrict__ k, const T* __restrict__ v, float scale,
                                          float softcap, long long begin, long long end, int dim) {
  const int lane = threadIdx.x;
  s.most = __int_as_float(0xff800000);
  s.sum = 0.0f;
#pragma unroll
  for (int i = 0; i < kMostDim / 32; ++i) s.value[i] = 0.0f;
  for (long long start = begin; start < end; start += 32) {
    const long long j = start + lane;
    float score = __int_as_float(0xff800000);
    if (j < end) {
      float dot = 0.0f;
      for (int c = 0; c < dim; ++c) dot = fmaf(query[c], static_cast<float>(k[j * dim + c]), dot);
      score = dot * scale;
      if (softcap > 0.0f) score = softcap * tanhf(score / softcap);
    }
    float next = score;
    for (int offset = 16; offset > 0; offset >>= 1) next = fmaxf(next, __shfl_xor_sync(0xffffffffu, next, offset));
    next = fmaxf(next, s.most);
    const float keep = exp2f((s.most - next) * kLog2e);
    const float p = exp2f((score - next) * kLog2e);
    s.most = next;
    s.sum = fmaf(s.sum, keep, p);
#pragma unroll
    for (int i = 0; i < kMostDim / 32; ++i) s.value[i] *= keep;
    const int count = end - start < 32 ? static_cast<int>(end - start) : 32;
    for (int t = 0; t < count; ++t) {
      const float weight = __shfl_sync(0xffffffffu, p, t);
      const T* from = v + (start + t) * dim;
#pragma unroll
      for (int i = 0; i < kMostDim / 32; ++i) {
        const int c = i * 32 + lane;
        if (c < dim) s.value[i] = fmaf(weight, static_cast<float>(from[c]), s.value[i]);
      }
    }
  }
  for (int offset = 16; offset > 0; offset >>= 1) s.sum += __shfl_xor_sync(0xffffffffu, s.sum, offset);
}

extern "C" __global__ void __launch_bounds__(256) attention_rows(const T* __restrict__ q, const T* __restrict__ k,
                                                                 const T* __restrict__ v, float scale, float softcap, int causal,
                                                                 T* __restrict__ o, long long heads, long long queries,
                                                                 long long keys, int dim) {
  __shared__ float queries_of[8][kMostDim];
  const long long row = static_cast<long long>(blockIdx.x) * 8 + threadIdx.y;
  if (row >= heads * queries) return;
  float* query = queries_of[threadIdx.y];
  for (int c = threadIdx.x; c < dim; c += 32) query[c] = static_cast<float>(q[row * dim + c]);
  __syncwarp();
  const long long head = row / queries;
  const long long visible = causal ? keys - queries + row % queries + 1 : keys;
  State s;
  scan_keys(s, query, k + head * keys * dim, v + head * keys * dim, scale, softcap, 0, visible, dim);
#pragma unroll
  for (int i = 0; i < kMostDim / 32; ++i) {
    const int c = i * 32 + threadIdx.x;
    if (c < dim) o[row * dim + c] = T(s.value[i] / s.sum);
  }
}

// Decoding: the newest query sees the whole cache.
extern "C" __global__ void __launch_bounds__(32) decode_parts(const T* __restrict__ q, const T* __restrict__ k,
                                                              const T* __restrict__ v, float scale, float softcap,
                                                              float* __restrict__ parts, long long queries, long long keys, int dim) {
  __shared__ float query[kMostDim];
  const long long row = blockIdx.x;
  for (int c = threadIdx.x; c < dim; c += 32) query[c] = static_cast<float>(q[row * dim + c]);
  __syncwarp();
  const long long head = row / queries;
  const long long begin = static_cast<long long>(blockIdx.y) * kChunk;
  const long long end = begin + kChunk < keys ? begin + kChunk : keys;
  State s;
  scan_keys(s, query, k + head * keys * dim, v + head * keys * dim, scale, softcap, begin, end, dim);
  float* part = parts + (row * gridDim.y + blockIdx.y) * (dim + 2);
#pragma unroll
  for (int i = 0; i < kMostDim / 32; ++i) {
    const int c = i * 32 + threadIdx.x;
    if (c < dim) part[c] = s.value[i];
  }
  if (threadIdx.x == 0) {
    part[dim] = s.most;
    part[dim + 1] = s.sum;
  }
}

extern "C" __global__ void __launch_bounds__(32) decode_join(const float* __restrict__ parts, T* __restrict__ o, long long keys, int dim) {
  const long long row = blockIdx.x;
  const int chunks = static_cast<int>((keys + kChunk - 1) / kChunk);
  const float* mine = parts + row * chunks * (dim + 2);
  float most = mine[dim];
  for (int p = 1; p < chunks; ++p) most = fmaxf(most, mine[p * (dim + 2) + dim]);
  float sum = 0.0f;
  float value[kMostDim / 32] = {};
  for (int p = 0; p < chunks; ++p) {
    const float* part = mine + p * (dim + 2);
    const float keep = exp2f((part[dim] - most) * kLog2e);
    sum = fmaf(part[dim + 1], keep, sum);
#pragma unroll
    for (int i = 0; i < kMostDim / 32; ++i) {
      const int c = i * 32 + threadIdx.x;
      if (c < dim) value[i] = fmaf(part[c], keep, value[i]);
    }
  }
#pragma unroll
  for (int i = 0; i < kMostDim / 32; ++i) {
    const int c = i * 32 + threadIdx.x;
    if (c < dim) o[row * dim + c] = T(value[i] / sum);
  }
}
