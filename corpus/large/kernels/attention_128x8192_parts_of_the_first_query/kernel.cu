// Wrong: the keys in eight parts, merged by tiles of 64 queries, with as many parts as the first query of a tile sees: of a tile that lies across the end of a part the other queries lose up to 63 of their last keys (causal, more than 1,024 queries, no multiple of 64).
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

constexpr int kKeys = 8192;
constexpr int kParts = 8;
constexpr int kPart = kKeys / kParts;
constexpr int kQueries = 32;  // of a block
constexpr int kTile = 16;     // keys at a time
constexpr int kMost = 128;    // of dim

// Four threads a query: four keys each for the scores, every fourth column for the values.
extern "C" __global__ void __launch_bounds__(128)
    part(const T* __restrict__ q, const T* __restrict__ k, const T* __restrict__ v, float scale,
         float softcap, int causal, float* __restrict__ most, float* __restrict__ total,
         float* __restrict__ values, long long heads, long long queries, long long dim) {
  __shared__ T qs[kQueries][kMost + 2];
  __shared__ T ks[kTile][kMost + 2];
  __shared__ T vs[kTile][kMost];
  __shared__ float ps[kQueries][kTile + 1];
  const long long head = blockIdx.z;
  const long long query0 = static_cast<long long>(blockIdx.x) * kQueries;
  const long long begin = static_cast<long long>(blockIdx.y) * kPart;
  const long long last = min(queries, query0 + kQueries) - 1;
  const long long seen = causal ? kKeys - queries + last + 1 : kKeys;
  if (begin >= seen) return;
  const long long end = min(begin + kPart, seen);
  const int d = static_cast<int>(dim);
  for (int e = threadIdx.x; e < kQueries * d; e += 128) {
    const long long query = query0 + e / d;
    qs[e / d][e % d] = query < queries ? q[(head * queries + query) * dim + e % d] : T(0.0f);
  }
  const int i = threadIdx.x / 4;
  const int part4 = threadIdx.x % 4;
  const long long query = query0 + i;
  const long long visible = causal ? min(end, kKeys - queries + query + 1) : end;
  float largest = __int_as_float(0xff800000);
  float sum = 0.0f;
  float out[kMost / 4] = {};
  for (long long key0 = begin; key0 < end; key0 += kTile) {
    __syncthreads();
    for (int e = threadIdx.x; e < kTile * d; e += 128) {
      ks[e / d][e % d] = k[(head * kKeys + key0 + e / d) * dim + e % d];
      vs[e / d][e % d] = v[(head * kKeys + key0 + e / d) * dim + e % d];
    }
    __syncthreads();
    float s[4] = {};
    for (int c = 0; c < d; ++c) {
      const float qv = static_cast<float>(qs[i][c]);
#pragma unroll
      for (int j = 0; j < 4; ++j) s[j] += qv * static_cast<float>(ks[part4 * 4 + j][c]);
    }
    float tile_most = __int_as_float(0xff800000);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      s[j] *= scale;
      if (softcap > 0.0f) s[j] = softcap * tanhf(s[j] / softcap);
      if (key0 + part4 * 4 + j >= visible) s[j] = __int_as_float(0xff800000);
      tile_most = fmaxf(tile_most, s[j]);
    }
    tile_most = fmaxf(tile_most, __shfl_xor_sync(0xffffffffu, tile_most, 1));
    tile_most = fmaxf(tile_most, __shfl_xor_sync(0xffffffffu, tile_most, 2));
    const float now = fmaxf(largest, tile_most);
    const float keep = largest == now ? 1.0f : expf(largest - now);
    float tile_sum = 0.0f;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float p = key0 + part4 * 4 + j < visible ? expf(s[j] - now) : 0.0f;
      ps[i][part4 * 4 + j] = p;
      tile_sum += p;
    }
    tile_sum += __shfl_xor_sync(0xffffffffu, tile_sum, 1);
    tile_sum += __shfl_xor_sync(0xffffffffu, tile_sum, 2);
    sum = sum * keep + tile_sum;
    largest = now;
    __syncwarp();
#pragma unroll
    for (int o = 0; o < kMost / 4; ++o) {
      const int c = part4 + 4 * o;
      if (c < d) {
        float value = out[o] * keep;
        for (int j = 0; j < kTile; ++j) value += ps[i][j] * static_cast<float>(vs[j][c]);
        out[o] = value;
      }
    }
    __syncwarp();
  }
  if (query >= queries) return;
  const long long at = (blockIdx.y * heads + head) * queries + query;
  if (part4 == 0) {
    most[at] = largest;
    total[at] = sum;
  }
#pragma unroll
  for (int o = 0; o < kMost / 4; ++o)
    if (part4 + 4 * o < d) values[at * dim + part4 + 4 * o] = out[o];
}

extern "C" __global__ void __launch_bounds__(128)
    merge(const float* __restrict__ most, const float* __restrict__ total,
          const float* __restrict__ values, int causal, T* __restrict__ o, long long heads,
          long long queries, long long dim) {
  const long long head = blockIdx.y;
  const long long query0 = static_cast<long long>(blockIdx.x) * 64;
  const int used = causal ? static_cast<int>((kKeys - queries + query0) / kPart) + 1 : kParts;
  const int d = static_cast<int>(dim);
  for (int e = threadIdx.x; e < 64 * d; e += 128) {
    const long long query = query0 + e / d;
    if (query >= queries) break;
    const long long row = head * queries + query;
    float largest = most[row];
    for (int p = 1; p < used; ++p) largest = fmaxf(largest, most[p * heads * queries + row]);
    float sum = 0.0f;
    float value = 0.0f;
    for (int p = 0; p < used; ++p) {
      const long long at = p * heads * queries + row;
      const float weight = expf(most[at] - largest);
      sum += weight * total[at];
      value += weight * values[at * dim + e % d];
    }
    o[row * dim + e % d] = T(value / sum);
  }
}
