// Attention with the keys split among blocks: each block works on 512 keys for 64 queries of a head
// and leaves maximum, sum and unnormalised output in workspace; a second kernel combines the splits.
#include <cuda_fp16.h>

namespace {

constexpr int kSplits = 16;
constexpr int kRows = 64;
constexpr int kTile = 64;
constexpr int kMaxDim = 128;
constexpr int kStride = kMaxDim + 8;
constexpr int kThreads = 128;
constexpr float kLog2e = 1.4426950408889634f;

__device__ __forceinline__ unsigned smem_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void ldmatrix_x4(unsigned (&r)[4], const __half* p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(smem_address(p))
               : "memory");
}

__device__ __forceinline__ void ldmatrix_x4_trans(unsigned (&r)[4], const __half* p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(smem_address(p))
               : "memory");
}

// d += a * b, a 16x16, b 16x8.
__device__ __forceinline__ void mma(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ unsigned pack(float low, float high) {
  const __half2 both = __floats2half2_rn(low, high);
  return *reinterpret_cast<const unsigned*>(&both);
}

__device__ __forceinline__ void load_tile(__half (*tile)[kStride], const __half* __restrict__ source,
                                          int dim) {
  const int padded = (dim + 15) / 16 * 16;
  if (dim % 8 == 0) {
    const int vectors = padded / 8;
    for (int i = threadIdx.x; i < kTile * vectors; i += kThreads) {
      const int r = i / vectors;
      const int c = i % vectors * 8;
      uint4 value = make_uint4(0, 0, 0, 0);
      if (c < dim) value = *reinterpret_cast<const uint4*>(source + r * dim + c);
      *reinterpret_cast<uint4*>(&tile[r][c]) = value;
    }
  } else {
    for (int i = threadIdx.x; i < kTile * padded; i += kThreads) {
      const int r = i / padded;
      const int c = i % padded;
      tile[r][c] = c < dim ? source[r * dim + c] : __float2half(0.0f);
    }
  }
}

__device__ __forceinline__ unsigned load_pair(const __half* __restrict__ row, bool valid, int c,
                                              int dim) {
  const unsigned low = valid && c < dim ? __half_as_ushort(row[c]) : 0;
  const unsigned high = valid && c + 1 < dim ? __half_as_ushort(row[c + 1]) : 0;
  return low | high << 16;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads)
    attend(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v,
           float scale, float softcap, int causal, float* __restrict__ part_m,
           float* __restrict__ part_l, float* __restrict__ part_o, int queries, int keys, int dim) {
  __shared__ __align__(16) __half tile_k[kTile][kStride];
  __shared__ __align__(16) __half tile_v[kTile][kStride];
  const float minus_infinity = __int_as_float(0xff800000);

  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const int q0 = blockIdx.x * kRows;
  const int split = blockIdx.y;
  const int head = blockIdx.z;
  const int offset = keys - queries;
  const int first = split * (keys / kSplits);
  int last = first + keys / kSplits;
  if (causal) last = min(last, offset + q0 + kRows);
  const long long part = (static_cast<long long>(head) * kSplits + split) * queries;

  if (last <= first) {  // no query of this block sees any key of this split
    for (int r = threadIdx.x; r < min(kRows, queries - q0); r += kThreads) {
      part_m[part + q0 + r] = minus_infinity;
      part_l[part + q0 + r] = 0.0f;
    }
    for (int i = threadIdx.x; i < min(kRows, queries - q0) * dim; i += kThreads)
      part_o[(part + q0) * dim + i] = 0.0f;
    return;
  }

  const int row0 = q0 + warp * 16 + lane / 4;
  const int row1 = row0 + 8;
  const int limit0 = causal ? offset + row0 + 1 : keys;
  const int limit1 = causal ? offset + row1 + 1 : keys;
  const __half* query0 = q + (static_cast<long long>(head) * queries + row0) * dim;
  const __half* query1 = q + (static_cast<long long>(head) * queries + row1) * dim;
  unsigned query[kMaxDim / 16][4];
#pragma unroll
  for (int kc = 0; kc < kMaxDim / 16; ++kc) {
    const int c = kc * 16 + lane % 4 * 2;
    query[kc][0] = load_pair(query0, row0 < queries, c, dim);
    query[kc][1] = load_pair(query1, row1 < queries, c, dim);
    query[kc][2] = load_pair(query0, row0 < queries, c + 8, dim);
    query[kc][3] = load_pair(query1, row1 < queries, c + 8, dim);
  }

  float acc[kMaxDim / 8][4] = {};
  float m0 = minus_infinity, m1 = minus_infinity;
  float l0 = 0.0f, l1 = 0.0f;
  for (int start = first; start < last; start += kTile) {
    const long long begin = (static_cast<long long>(head) * keys + start) * dim;
    __syncthreads();
    load_tile(tile_k, k + begin, dim);
    load_tile(tile_v, v + begin, dim);
    __syncthreads();

    float s[kTile / 8][4] = {};
#pragma unroll
    for (int kc = 0; kc < kMaxDim / 16; ++kc) {
      if (kc * 16 < dim) {
#pragma unroll
        for (int nb = 0; nb < kTile / 8; nb += 2) {
          unsigned b[4];
          ldmatrix_x4(b, &tile_k[nb * 8 + lane % 8 + lane / 16 * 8][kc * 16 + lane / 8 % 2 * 8]);
          mma(s[nb], query[kc], b[0], b[1]);
          mma(s[nb + 1], query[kc], b[2], b[3]);
        }
      }
    }

    float next0 = m0, next1 = m1;
#pragma unroll
    for (int nb = 0; nb < kTile / 8; ++nb) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        float x = s[nb][e] * scale;
        if (softcap > 0.0f) x = softcap * tanhf(x / softcap);
        x *= kLog2e;
        const int key = start + nb * 8 + lane % 4 * 2 + e % 2;
        if (key >= (e < 2 ? limit0 : limit1)) x = minus_infinity;
        s[nb][e] = x;
        if (e < 2) next0 = fmaxf(next0, x);
        else next1 = fmaxf(next1, x);
      }
    }
#pragma unroll
    for (int distance = 1; distance < 4; distance *= 2) {
      next0 = fmaxf(next0, __shfl_xor_sync(0xffffffffu, next0, distance));
      next1 = fmaxf(next1, __shfl_xor_sync(0xffffffffu, next1, distance));
    }
    const float base0 = next0;
    const float base1 = next1;
    const float alpha0 = exp2f(m0 - base0);
    const float alpha1 = exp2f(m1 - base1);
    m0 = next0;
    m1 = next1;
    l0 *= alpha0;
    l1 *= alpha1;
#pragma unroll
    for (int nb = 0; nb < kMaxDim / 8; ++nb) {
      acc[nb][0] *= alpha0;
      acc[nb][1] *= alpha0;
      acc[nb][2] *= alpha1;
      acc[nb][3] *= alpha1;
    }
#pragma unroll
    for (int nb = 0; nb < kTile / 8; ++nb) {
      s[nb][0] = exp2f(s[nb][0] - base0);
      s[nb][1] = exp2f(s[nb][1] - base0);
      s[nb][2] = exp2f(s[nb][2] - base1);
      s[nb][3] = exp2f(s[nb][3] - base1);
      l0 += s[nb][0] + s[nb][1];
      l1 += s[nb][2] + s[nb][3];
    }

#pragma unroll
    for (int kc = 0; kc < kTile / 16; ++kc) {
      const unsigned p[4] = {pack(s[2 * kc][0], s[2 * kc][1]), pack(s[2 * kc][2], s[2 * kc][3]),
                             pack(s[2 * kc + 1][0], s[2 * kc + 1][1]),
                             pack(s[2 * kc + 1][2], s[2 * kc + 1][3])};
#pragma unroll
      for (int nb = 0; nb < kMaxDim / 8; nb += 2) {
        if (nb * 8 < dim) {
          unsigned b[4];
          ldmatrix_x4_trans(b, &tile_v[kc * 16 + lane % 16][nb * 8 + lane / 16 * 8]);
          mma(acc[nb], p, b[0], b[1]);
          mma(acc[nb + 1], p, b[2], b[3]);
        }
      }
    }
  }

#pragma unroll
  for (int distance = 1; distance < 4; distance *= 2) {
    l0 += __shfl_xor_sync(0xffffffffu, l0, distance);
    l1 += __shfl_xor_sync(0xffffffffu, l1, distance);
  }
  if (lane % 4 == 0) {
    if (row0 < queries) {
      part_m[part + row0] = m0;
      part_l[part + row0] = l0;
    }
    if (row1 < queries) {
      part_m[part + row1] = m1;
      part_l[part + row1] = l1;
    }
  }
#pragma unroll
  for (int nb = 0; nb < kMaxDim / 8; ++nb) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int row = e < 2 ? row0 : row1;
      const int c = nb * 8 + lane % 4 * 2 + e % 2;
      if (row < queries && c < dim) part_o[(part + row) * dim + c] = acc[nb][e];
    }
  }
}

// A warp a query.
extern "C" __global__ void combine(const float* __restrict__ part_m, const float* __restrict__ part_l,
                                   const float* __restrict__ part_o, __half* __restrict__ o,
                                   int heads, int queries, int dim) {
  const int row = blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= heads * queries) return;
  const int head = row / queries;
  const long long part = static_cast<long long>(head) * kSplits * queries + row % queries;

  float largest = __int_as_float(0xff800000);
  for (int s = 0; s < kSplits; ++s)
    largest = fmaxf(largest, part_m[part + static_cast<long long>(s) * queries]);
  float weight[kSplits];
  float sum = 0.0f;
#pragma unroll
  for (int s = 0; s < kSplits; ++s) {
    const long long i = part + static_cast<long long>(s) * queries;
    weight[s] = exp2f(part_m[i] - largest);
    sum += weight[s] * part_l[i];
  }
  for (int c = threadIdx.x; c < dim; c += 32) {
    float value = 0.0f;
#pragma unroll
    for (int s = 0; s < kSplits; ++s)
      value += weight[s] * part_o[(part + static_cast<long long>(s) * queries) * dim + c];
    o[static_cast<long long>(row) * dim + c] = __float2half(value / sum);
  }
}
