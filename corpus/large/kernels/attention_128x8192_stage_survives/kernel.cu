// Attention of 128 heads over 8192 keys by persistent blocks: 264 of them take tiles of 64 queries in turns. Keys and
// values pass through two stages by asynchronous copies; queries stay in registers.
#include <cuda_fp16.h>

using T = __half;

namespace {

constexpr int kHeads = 128, kKeysAll = 8192;
constexpr int kQueries = 64, kKeys = 64, kDim = 128, kLd = kDim + 8, kThreads = 128;
constexpr unsigned kAll = 0xffffffffu;
constexpr float kLog2e = 1.4426950408889634f;

__device__ __forceinline__ unsigned smem(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

__device__ __forceinline__ void copy16(T* to, const T* from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(smem(to)), "l"(from), "r"(bytes) : "memory");
}

__device__ __forceinline__ void ldmatrix(unsigned (&r)[4], const T* from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(smem(from))
               : "memory");
}

__device__ __forceinline__ void ldmatrix_t(unsigned (&r)[4], const T* from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(smem(from))
               : "memory");
}

__device__ __forceinline__ void mma(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// 64 rows from row `first` on; zeros from row `rows` and from column d on.
__device__ __forceinline__ void fetch(T* to, const T* from, int first, int rows, int d) {
  if (d % 8 == 0) {
    for (int i = threadIdx.x; i < 64 * (kDim / 8); i += kThreads) {
      const int r = i / (kDim / 8), c = i % (kDim / 8) * 8;
      const bool inside = first + r < rows && c < d;
      copy16(to + r * kLd + c, inside ? from + (first + r) * d + c : from, inside ? 16 : 0);
    }
  } else {
    for (int i = threadIdx.x; i < 64 * kDim; i += kThreads) {
      const int r = i / kDim, c = i % kDim;
      to[r * kLd + c] = first + r < rows && c < d ? from[(first + r) * d + c] : T(0.0f);
    }
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads)
    attention(const T* __restrict__ q, const T* __restrict__ k, const T* __restrict__ v, float scale, float softcap,
              int causal, T* __restrict__ o, int queries, int d) {
  extern __shared__ __align__(16) unsigned char raw[];
  T* qs = reinterpret_cast<T*>(raw);
  T* ks = qs + kQueries * kLd;       // two stages
  T* vs = ks + 2 * kKeys * kLd;      // two stages
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int query_tiles = (queries + kQueries - 1) / kQueries;
  const int before = kKeysAll - queries;

  int stage = 0;
  for (int item = blockIdx.x; item < kHeads * query_tiles; item += gridDim.x) {
    const long long head = item / query_tiles;
    const int q0 = item % query_tiles * kQueries;
    const T* k_head = k + head * kKeysAll * d;
    const T* v_head = v + head * kKeysAll * d;
    const int seen = causal ? before + min(q0 + kQueries, queries) : kKeysAll;
    const int tiles = (seen + kKeys - 1) / kKeys;
    const int row = q0 + warp * 16 + lane / 4;
    const int visible[2] = {causal ? before + row + 1 : kKeysAll, causal ? before + row + 9 : kKeysAll};

    __syncthreads();  // all warps are done with the turn before
    fetch(qs, q + head * queries * d, q0, queries, d);
    fetch(ks, k_head, 0, kKeysAll, d);
    fetch(vs, v_head, 0, kKeysAll, d);
    asm volatile("cp.async.commit_group;\ncp.async.wait_group 0;" ::: "memory");
    __syncthreads();
    unsigned fq[kDim / 16][4];
#pragma unroll
    for (int c = 0; c < kDim / 16; ++c) ldmatrix(fq[c], qs + (warp * 16 + lane % 16) * kLd + c * 16 + lane / 16 * 8);

    float out[kDim / 8][4];
#pragma unroll
    for (int i = 0; i < kDim / 8; ++i)
#pragma unroll
      for (int e = 0; e < 4; ++e) out[i][e] = 0.0f;
    float top[2] = {-INFINITY, -INFINITY}, sum[2] = {0.0f, 0.0f};

    for (int tile = 0; tile < tiles; ++tile, stage ^= 1) {
      asm volatile("cp.async.wait_group 0;" ::: "memory");
      __syncthreads();  // this tile is here, and the one before has been used
      if (tile + 1 < tiles) {
        fetch(ks + (stage ^ 1) * kKeys * kLd, k_head, (tile + 1) * kKeys, kKeysAll, d);
        fetch(vs + (stage ^ 1) * kKeys * kLd, v_head, (tile + 1) * kKeys, kKeysAll, d);
      }
      asm volatile("cp.async.commit_group;" ::: "memory");
      const T* kt = ks + stage * kKeys * kLd;
      const T* vt = vs + stage * kKeys * kLd;
      float s[kKeys / 8][4];
#pragma unroll
      for (int j = 0; j < kKeys / 8; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) s[j][e] = 0.0f;
#pragma unroll
      for (int c = 0; c < kDim / 16; ++c) {
        if (16 * c < d) {
#pragma unroll
          for (int j = 0; j < kKeys / 16; ++j) {
            unsigned fk[4];
            ldmatrix(fk, kt + (16 * j + lane / 16 * 8 + lane % 8) * kLd + 16 * c + lane / 8 % 2 * 8);
            mma(s[2 * j], fq[c], fk[0], fk[1]);
            mma(s[2 * j + 1], fq[c], fk[2], fk[3]);
          }
        }
      }
      float most[2] = {top[0], top[1]};
#pragma unroll
      for (int j = 0; j < kKeys / 8; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          float score = s[j][e] * scale;
          if (softcap > 0.0f) score = softcap * tanhf(score / softcap);
          const int key = tile * kKeys + 8 * j + lane % 4 * 2 + e % 2;
          s[j][e] = key < visible[e / 2] ? score * kLog2e : -INFINITY;
          most[e / 2] = fmaxf(most[e / 2], s[j][e]);
        }
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        most[h] = fmaxf(most[h], __shfl_xor_sync(kAll, most[h], 1));
        most[h] = fmaxf(most[h], __shfl_xor_sync(kAll, most[h], 2));
        const float fade = top[h] == most[h] ? 1.0f : exp2f(top[h] - most[h]);
        top[h] = most[h];
        if (most[h] == -INFINITY) most[h] = 0.0f;
        sum[h] *= fade;
#pragma unroll
        for (int i = 0; i < kDim / 8; ++i) {
          out[i][2 * h] *= fade;
          out[i][2 * h + 1] *= fade;
        }
      }
#pragma unroll
      for (int j = 0; j < kKeys / 8; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          s[j][e] = exp2f(s[j][e] - most[e / 2]);
          sum[e / 2] += s[j][e];
        }
#pragma unroll
      for (int j = 0; j < kKeys / 16; ++j) {
        unsigned fp[4];
#pragma unroll
        for (int part = 0; part < 4; ++part) {
          const __half2 two = __floats2half2_rn(s[2 * j + part / 2][part % 2 * 2], s[2 * j + part / 2][part % 2 * 2 + 1]);
          fp[part] = *reinterpret_cast<const unsigned*>(&two);
        }
#pragma unroll
        for (int i = 0; i < kDim / 16; ++i) {
          if (16 * i < d) {
            unsigned fv[4];
            ldmatrix_t(fv, vt + (16 * j + lane % 16) * kLd + 16 * i + lane / 16 * 8);
            mma(out[2 * i], fp, fv[0], fv[1]);
            mma(out[2 * i + 1], fp, fv[2], fv[3]);
          }
        }
      }
    }
    T* o_head = o + head * queries * d;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      sum[h] += __shfl_xor_sync(kAll, sum[h], 1);
      sum[h] += __shfl_xor_sync(kAll, sum[h], 2);
      if (row + 8 * h < queries) {
#pragma unroll
        for (int i = 0; i < kDim / 8; ++i)
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            const int c = 8 * i + lane % 4 * 2 + e;
            if (c < d) o_head[(row + 8 * h) * d + c] = T(out[i][2 * h + e] / sum[h]);
          }
      }
    }
  }
}
