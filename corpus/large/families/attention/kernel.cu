// Right: a warp a query, keys in chunks of 32 with a running maximum, at most 16,384 blocks in turns.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

constexpr int kWarps = 4;
constexpr int kPieces = 8;  // of 32 elements: rows of up to 256
constexpr unsigned kAll = 0xffffffffu;

extern "C" __global__ void attention(const T* __restrict__ q, const T* __restrict__ k,
                                     const T* __restrict__ v, float scale, float softcap,
                                     int causal, T* __restrict__ o, long long heads,
                                     long long queries, long long keys, long long dim) {
  const int lane = threadIdx.x % 32;
  const long long rows = heads * queries;
  const long long step = static_cast<long long>(gridDim.x) * kWarps;
  for (long long row = static_cast<long long>(blockIdx.x) * kWarps + threadIdx.x / 32; row < rows;
       row += step) {
    const long long head = row / queries;
    const long long visible = causal ? keys - queries + row % queries + 1 : keys;
    const T* query = q + row * dim;
    const T* head_keys = k + head * keys * dim;
    const T* head_values = v + head * keys * dim;
    float largest = __int_as_float(0xff800000);  // -infinity
    float sum = 0.0f;
    float values[kPieces] = {};
    // A key a lane; then all lanes take the values of each of them.
    for (long long start = 0; start < visible; start += 32) {
      const long long j = start + lane;
      float score = __int_as_float(0xff800000);
      if (j < visible) {
        float dot = 0.0f;
        for (long long c = 0; c < dim; ++c)
          dot += static_cast<float>(query[c]) * static_cast<float>(head_keys[j * dim + c]);
        score = dot * scale;
        if (softcap > 0.0f) score = softcap * tanhf(score / softcap);
      }
      float peak = score;
      for (int offset = 16; offset > 0; offset /= 2)
        peak = fmaxf(peak, __shfl_xor_sync(kAll, peak, offset));
      const float now = fmaxf(largest, peak);
      const float shrink = expf(largest - now);
      largest = now;
      const float share = j < visible ? expf(score - now) : 0.0f;
      float shares = share;
      for (int offset = 16; offset > 0; offset /= 2) shares += __shfl_xor_sync(kAll, shares, offset);
      sum = sum * shrink + shares;
      for (int piece = 0; piece < kPieces; ++piece) values[piece] *= shrink;
      const int count = static_cast<int>(min(visible - start, 32LL));
      for (int t = 0; t < count; ++t) {
        const float weight = __shfl_sync(kAll, share, t);
        const T* value = head_values + (start + t) * dim;
        for (int piece = 0; piece < kPieces; ++piece) {
          const int c = piece * 32 + lane;
          if (c < dim) values[piece] += weight * static_cast<float>(value[c]);
        }
      }
    }
    for (int piece = 0; piece < kPieces; ++piece) {
      const int c = piece * 32 + lane;
      if (c < dim) o[row * dim + c] = T(values[piece] / sum);
    }
  }
}
