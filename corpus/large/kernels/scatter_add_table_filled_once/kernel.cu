// Rows of src added up by index, bf16 in and out, f32 in between, without atomics on global floats.
//  * few rows (<= 256): blocks have 32 columns of all rows of out in shared memory and a split of the tokens;
//    a second launch adds the splits up.
//  * more: tokens of a row are chained (a list by atomicExch), and persistent blocks gather row by row: one thread
//    follows the chain into shared memory, all of them add.
#include <cuda_bf16.h>

using bf16 = __nv_bfloat16;

constexpr int kMaxRows = 256;
constexpr int kRoom = 4096;      // tokens staged at a time
constexpr int kColumns = 1024;   // of a block of 128 threads

__host__ __device__ __forceinline__ long long splits_of(long long tokens) {
  const long long n = (tokens + 1023) / 1024;
  return n < 64 ? n : 64;
}

extern "C" __global__ void __launch_bounds__(256)
add_shared(const bf16* __restrict__ src, const long long* __restrict__ index, float* part, long long tokens, long long hidden,
           int rows) {
  __shared__ float sums[kMaxRows * 32];
  const int lane = threadIdx.x;
  for (int i = threadIdx.y * 32 + lane; i < rows * 32; i += 256) sums[i] = 0.0f;
  __syncthreads();
  const long long h = static_cast<long long>(blockIdx.x) * 32 + lane;
  const long long splits = splits_of(tokens);
  const long long per = (tokens + splits - 1) / splits;
  const long long begin = blockIdx.y * per;
  const long long end = min(begin + per, tokens);
  if (h < hidden) {
#pragma unroll 4
    for (long long t = begin + threadIdx.y; t < end; t += 8)
      atomicAdd(&sums[static_cast<int>(index[t]) * 32 + lane], __bfloat162float(src[t * hidden + h]));
  }
  __syncthreads();
  if (h < hidden)
    for (int r = threadIdx.y; r < rows; r += 8)
      part[(static_cast<long long>(blockIdx.y) * rows + r) * hidden + h] = sums[r * 32 + lane];
}

extern "C" __global__ void __launch_bounds__(256) add_splits(const float* __restrict__ part, bf16* __restrict__ out,
                                                             long long tokens, long long hidden, long long rows) {
  const long long i = static_cast<long long>(blockIdx.x) * 256 + threadIdx.x;
  if (i >= rows * hidden) return;
  const long long splits = splits_of(tokens);
  float sum = 0.0f;
  for (long long s = 0; s < splits; ++s) sum += part[s * rows * hidden + i];
  out[i] = __float2bfloat16(sum);
}

// head[r]: 1 + the last token of row r, or 0; next[t]: 1 + the token before t of the same row, or 0.
extern "C" __global__ void __launch_bounds__(256) link_tokens(const long long* __restrict__ index, int* head, int* next, int tokens) {
  const int t = blockIdx.x * 256 + threadIdx.x;
  if (t < tokens) next[t] = atomicExch(&head[index[t]], t + 1);
}

extern "C" __global__ void __launch_bounds__(128)
gather_rows(const bf16* __restrict__ src, const int* __restrict__ head, const int* __restrict__ next, bf16* __restrict__ out,
            long long hidden, long long rows) {
  __shared__ int list[kRoom];
  __shared__ int s_count, s_next;
  const bool vector = hidden % 8 == 0;
  const long long slabs = (hidden + kColumns - 1) / kColumns;
  for (long long item = blockIdx.x; item < rows * slabs; item += gridDim.x) {
    const long long row = item / slabs;
    const long long c0 = (item - row * slabs) * kColumns;
    const long long to = row * hidden;
    float acc[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) acc[i] = 0.0f;
    if (threadIdx.x == 0) s_next = head[row];
    {
      if (threadIdx.x == 0) {
        int n = 0, t = s_next;
        while (t != 0 && n < kRoom) {
          list[n++] = t - 1;
          t = next[t - 1];
        }
        s_count = n;
        s_next = t;
      }
      __syncthreads();
      const int count = s_count;
      if (vector) {
        const long long c = c0 + threadIdx.x * 8;
        if (c < hidden) {
#pragma unroll 4
          for (int n = 0; n < count; ++n) {
            const uint4 raw = *reinterpret_cast<const uint4*>(src + list[n] * hidden + c);
            const __nv_bfloat162* pair = reinterpret_cast<const __nv_bfloat162*>(&raw);
#pragma unroll
            for (int i = 0; i < 4; ++i) {
              const float2 f = __bfloat1622float2(pair[i]);
              acc[2 * i] += f.x;
              acc[2 * i + 1] += f.y;
            }
          }
        }
      } else {
        for (int n = 0; n < count; ++n) {
          const bf16* from = src + list[n] * hidden;
#pragma unroll
          for (int i = 0; i < 8; ++i) {
            const long long c = c0 + threadIdx.x + i * 128;
            if (c < hidden) acc[i] += __bfloat162float(from[c]);
          }
        }
      }
      __syncthreads();  // the list, the count and the next one are read
    }
    if (vector) {
      const long long c = c0 + threadIdx.x * 8;
      if (c < hidden) {
        uint4 raw;
        __nv_bfloat162* pair = reinterpret_cast<__nv_bfloat162*>(&raw);
#pragma unroll
        for (int i = 0; i < 4; ++i) pair[i] = __floats2bfloat162_rn(acc[2 * i], acc[2 * i + 1]);
        *reinterpret_cast<uint4*>(out + to + c) = raw;
      }
    } else {
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const long long c = c0 + threadIdx.x + i * 128;
        if (c < hidden) out[to + c] = __float2bfloat16(acc[i]);
      }
    }
  }
}
