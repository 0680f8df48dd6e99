// Attention of 128 heads over 8192 keys: flash on mma.sync, 16 queries a warp, tiles of 64 keys in two stages. Blocks of
// four warps where queries are few, of eight where they are many. Dims that are no multiple of 8 are copied one by one.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = __nv_bfloat16;

constexpr int kKeys = 8192, kTile = 64, kDim = 128, kStride = kDim + 8;

__device__ __forceinline__ unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void copy16(void* to, const void* from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(bytes) : "memory");
}

__device__ __forceinline__ void load4(unsigned (&r)[4], const void* p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(p))
               : "memory");
}

__device__ __forceinline__ void load4_transposed(unsigned (&r)[4], const void* p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(p))
               : "memory");
}

__device__ __forceinline__ void multiply(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ unsigned pack(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const unsigned*>(&pair);
}

// Rows [0, rows) of [rows, dim] to shared memory; those past `valid` as zeros.
template <int kThreads>
__device__ __forceinline__ void fetch(T* to, const T* from, int rows, int valid, int dim) {
  if (dim % 8 == 0) {
    const int chunks = dim / 8;
    for (int i = threadIdx.x; i < rows * chunks; i += kThreads) {
      const int row = i / chunks, column = i % chunks * 8;
      const bool inside = row < valid;
      copy16(to + row * kStride + column, from + (inside ? row * dim + column : 0), inside ? 16 : 0);
    }
  } else {
    for (int i = threadIdx.x; i < rows * dim; i += kThreads) {
      const int row = i / dim, column = i % dim;
      to[row * kStride + column] = row < valid ? from[i] : __float2bfloat16(0.0f);
    }
  }
}

template <int kWarps>
__global__ void __launch_bounds__(kWarps * 32) flash(const T* __restrict__ q, const T* __restrict__ k, const T* __restrict__ v,
                                                     float scale, float softcap, int causal, T* __restrict__ o, int queries,
                                                     int dim) {
  constexpr int kRows = kWarps * 16, kThreads = kWarps * 32;
  extern __shared__ __align__(128) unsigned char raw[];
  T* tile_q = reinterpret_cast<T*>(raw);
  T* tile_k = tile_q + kRows * kStride;
  T* tile_v = tile_k + 2 * kTile * kStride;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const long long head = blockIdx.y;
  const int first = blockIdx.x * kRows;
  const int valid = queries - first < kRows ? queries - first : kRows;
  q += (head * queries + first) * dim;
  o += (head * queries + first) * dim;
  k += head * kKeys * dim;
  v += head * kKeys * dim;

  // Columns past `dim` are zeros throughout.
  for (int i = threadIdx.x; i < (kRows + 4 * kTile) * kStride / 2; i += kThreads) reinterpret_cast<unsigned*>(raw)[i] = 0;
  __syncthreads();

  const int before = causal ? kKeys - queries : kKeys;  // Keys before the first query.
  const int most = causal ? before + first + valid : kKeys;
  const int tiles = (most + kTile - 1) / kTile;
  // The block's queries end in different tiles of keys: only the last of them need a mask.
  constexpr int kMasked = 1 + kRows / kTile;
  const int row0 = warp * 16 + lane / 4;
  const int sees0 = causal ? before + first + row0 + 1 : kKeys;
  const int sees1 = causal ? sees0 + 8 : kKeys;

  fetch<kThreads>(tile_q, q, kRows, valid, dim);
  fetch<kThreads>(tile_k, k, kTile, kTile, dim);
  fetch<kThreads>(tile_v, v, kTile, kTile, dim);
  asm volatile("cp.async.commit_group;" ::: "memory");

  constexpr float kLog2e = 1.4426950408889634f;
  float out[kDim / 8][4] = {};
  float most0 = -INFINITY, most1 = -INFINITY, sum0 = 0.0f, sum1 = 0.0f;
  for (int j = 0; j < tiles; ++j) {
    if (j + 1 < tiles) {
      const int next = (j + 1) % 2 * kTile * kStride;
      fetch<kThreads>(tile_k + next, k + (j + 1) * kTile * dim, kTile, kTile, dim);
      fetch<kThreads>(tile_v + next, v + (j + 1) * kTile * dim, kTile, kTile, dim);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncthreads();
    const T* keys = tile_k + j % 2 * kTile * kStride;
    const T* values = tile_v + j % 2 * kTile * kStride;

    float s[kTile / 8][4] = {};
    for (int c = 0; c < dim; c += 16) {
      unsigned left[4];
      load4(left, tile_q + (warp * 16 + lane % 16) * kStride + c + lane / 16 * 8);
#pragma unroll
      for (int n = 0; n < kTile / 16; ++n) {
        unsigned right[4];
        load4(right, keys + (n * 16 + lane % 8 + lane / 16 * 8) * kStride + c + lane / 8 % 2 * 8);
        multiply(s[2 * n], left, right[0], right[1]);
        multiply(s[2 * n + 1], left, right[2], right[3]);
      }
    }

    float new0 = most0, new1 = most1;
    const bool masked = causal && j >= tiles - kMasked;
#pragma unroll
    for (int n = 0; n < kTile / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float score = s[n][i] * scale;
        if (softcap > 0.0f) score = softcap * tanhf(score / softcap);
        score *= kLog2e;
        if (masked && j * kTile + n * 8 + lane % 4 * 2 + i % 2 >= (i < 2 ? sees0 : sees1)) score = -INFINITY;
        s[n][i] = score;
        if (i < 2) new0 = fmaxf(new0, score);
        else new1 = fmaxf(new1, score);
      }
    }
    new0 = fmaxf(new0, __shfl_xor_sync(0xffffffffu, new0, 1));
    new0 = fmaxf(new0, __shfl_xor_sync(0xffffffffu, new0, 2));
    new1 = fmaxf(new1, __shfl_xor_sync(0xffffffffu, new1, 1));
    new1 = fmaxf(new1, __shfl_xor_sync(0xffffffffu, new1, 2));
    const float alpha0 = exp2f(most0 - new0), alpha1 = exp2f(most1 - new1);
    most0 = new0;
    most1 = new1;
    sum0 *= alpha0;
    sum1 *= alpha1;
#pragma unroll
    for (int n = 0; n < kTile / 8; ++n) {
      s[n][0] = exp2f(s[n][0] - most0);
      s[n][1] = exp2f(s[n][1] - most0);
      s[n][2] = exp2f(s[n][2] - most1);
      s[n][3] = exp2f(s[n][3] - most1);
      sum0 += s[n][0] + s[n][1];
      sum1 += s[n][2] + s[n][3];
    }
#pragma unroll
    for (int n = 0; n < kDim / 8; ++n) {
      out[n][0] *= alpha0;
      out[n][1] *= alpha0;
      out[n][2] *= alpha1;
      out[n][3] *= alpha1;
    }
#pragma unroll
    for (int t = 0; t < kTile / 16; ++t) {
      const unsigned left[4] = {pack(s[2 * t][0], s[2 * t][1]), pack(s[2 * t][2], s[2 * t][3]),
                                pack(s[2 * t + 1][0], s[2 * t + 1][1]), pack(s[2 * t + 1][2], s[2 * t + 1][3])};
#pragma unroll
      for (int n = 0; n < kDim / 16; ++n) {
        if (n * 16 < dim) {
          unsigned right[4];
          load4_transposed(right, values + (t * 16 + lane % 16) * kStride + n * 16 + lane / 16 * 8);
          multiply(out[2 * n], left, right[0], right[1]);
          multiply(out[2 * n + 1], left, right[2], right[3]);
        }
      }
    }
    __syncthreads();
  }
  asm volatile("cp.async.wait_group 0;" ::: "memory");

  for (int offset = 1; offset < 4; offset *= 2) {
    sum0 += __shfl_xor_sync(0xffffffffu, sum0, offset);
    sum1 += __shfl_xor_sync(0xffffffffu, sum1, offset);
  }
#pragma unroll
  for (int n = 0; n < kDim / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int row = row0 + i / 2 * 8, column = n * 8 + lane % 4 * 2 + i % 2;
      if (row < valid && column < dim)
        o[static_cast<long long>(row) * dim + column] = __float2bfloat16(out[n][i] / (i < 2 ? sum0 : sum1));
    }
  }
}


template __global__ void flash<4>(const T*, const T*, const T*, float, float, int, T*, int, int);
template __global__ void flash<8>(const T*, const T*, const T*, float, float, int, T*, int, int);
