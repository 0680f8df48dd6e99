#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

constexpr int kQueries = 64;
constexpr int kKeys = 32;
constexpr int kDim = 128;
constexpr int kLd = kDim + 8;
constexpr int kTileBits = 6;  // of a work item; the head lies above
constexpr unsigned kAll = 0xffffffffu;

__device__ unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

__device__ void copy16(void* to, const void* from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(shared_address(to)),
               "l"(from), "r"(bytes)
               : "memory");
}

__device__ void commit() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }

template <int kPending>
__device__ void wait() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(kPending) : "memory");
}

__device__ void load4(unsigned (&to)[4], const void* from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(shared_address(from))
               : "memory");
}

__device__ void load4_transposed(unsigned (&to)[4], const void* from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(shared_address(from))
               : "memory");
}

__device__ void multiply(float (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};\n"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Work items in the order in which they are taken: the tiles of most keys first, so that the blocks end together.
extern "C" __global__ void plan(int* __restrict__ work, long long heads, long long queries) {
  const long long tiles = (queries + kQueries - 1) / kQueries;
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= heads * tiles) return;
  const int tile = static_cast<int>(tiles - 1 - i / heads), head = static_cast<int>(i % heads);
  work[i] = head << kTileBits | tile;
}

// Persistent blocks of four warps, 16 queries a warp; keys and values come 32 at a time into two buffers.
extern "C" __global__ void __launch_bounds__(128)
    attention(const T* __restrict__ q, const T* __restrict__ k, const T* __restrict__ v,
              float scale, float softcap, int causal, const int* __restrict__ work,
              T* __restrict__ o, long long heads, long long queries, long long keys,
              long long dim) {
  __shared__ __align__(16) T ks[2][kKeys][kLd];
  __shared__ __align__(16) T vs[2][kKeys][kLd];
  const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  const int d = static_cast<int>(dim);
  const bool pieces = d % 8 == 0;  // rows of whole 16-byte pieces
  const float lowest = __int_as_float(0xff800000);
  const float log2e = 1.4426950408889634f;
  const long long items = heads * ((queries + kQueries - 1) / kQueries);

  for (long long item = blockIdx.x; item < items; item += gridDim.x) {
    const int packed = work[item];
    const long long head = packed >> kTileBits;
    const long long q0 = static_cast<long long>(packed & ((1 << kTileBits) - 1)) * kQueries;
    const T* q_head = q + head * queries * dim;
    const T* k_head = k + head * keys * dim;
    const T* v_head = v + head * keys * dim;

    // The queries pass through the room of the keys into registers.
    T(*qs)[kLd] = &ks[0][0];
    for (int i = thread; i < kQueries * kDim; i += 128) {
      const int r = i / kDim, c = i % kDim;
      T value = T(0.0f);
      if (q0 + r < queries && c < d) value = q_head[(q0 + r) * dim + c];
      qs[r][c] = value;
    }
    __syncthreads();
    unsigned fq[kDim / 16][4];
#pragma unroll
    for (int c = 0; c < kDim / 16; ++c)
      load4(fq[c], &qs[warp * 16 + lane % 16][c * 16 + lane / 16 * 8]);
    __syncthreads();

    const auto fetch = [&](long long j0, int stage) {
      for (int i = thread; i < kKeys * kDim / 8; i += 128) {
        const int r = i / (kDim / 8), c = i % (kDim / 8) * 8;
        if (pieces) {
          const long long at = c < d ? (j0 + r) * dim + c : 0;
          copy16(&ks[stage][r][c], k_head + at, c < d ? 16 : 0);
          copy16(&vs[stage][r][c], v_head + at, c < d ? 16 : 0);
        } else {
          for (int e = c; e < c + 8; ++e) {
            ks[stage][r][e] = e < d ? k_head[(j0 + r) * dim + e] : T(0.0f);
            vs[stage][r][e] = e < d ? v_head[(j0 + r) * dim + e] : T(0.0f);
          }
        }
      }
    };

    const long long row = q0 + warp * 16 + lane / 4;
    const long long visible[2] = {causal ? keys - queries + row + 1 : keys,
                                  causal ? keys - queries + row + 9 : keys};
    const long long last = q0 + kQueries < queries ? q0 + kQueries - 1 : queries - 1;
    const long long seen = causal ? keys - queries + last + 1 : keys;
    const int turns = static_cast<int>((seen + kKeys - 1) / kKeys);

    float out[kDim / 8][4];
#pragma unroll
    for (int i = 0; i < kDim / 8; ++i)
#pragma unroll
      for (int e = 0; e < 4; ++e) out[i][e] = 0.0f;
    float top[2] = {lowest, lowest}, sum[2] = {0.0f, 0.0f};

    fetch(0, 0);
    commit();
    for (int turn = 0; turn < turns; ++turn) {
      if (turn + 1 < turns) fetch((turn + 1) * kKeys, (turn + 1) % 2);
      commit();
      wait<1>();
      __syncthreads();
      const int stage = turn % 2;
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
            load4(fk, &ks[stage][16 * j + lane / 16 * 8 + lane % 8][16 * c + lane / 8 % 2 * 8]);
            multiply(s[2 * j], fq[c], fk[0], fk[1]);
            multiply(s[2 * j + 1], fq[c], fk[2], fk[3]);
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
          const long long key = static_cast<long long>(turn) * kKeys + 8 * j + lane % 4 * 2 + e % 2;
          s[j][e] = key < visible[e / 2] ? score * log2e : lowest;
          most[e / 2] = fmaxf(most[e / 2], s[j][e]);
        }
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        most[h] = fmaxf(most[h], __shfl_xor_sync(kAll, most[h], 1));
        most[h] = fmaxf(most[h], __shfl_xor_sync(kAll, most[h], 2));
        const float fade = exp2f(top[h] - most[h]);  // key 0 is seen by all: `most` is a number
        top[h] = most[h];
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
          s[j][e] = exp2f(s[j][e] - top[e / 2]);
          sum[e / 2] += s[j][e];
        }
#pragma unroll
      for (int j = 0; j < kKeys / 16; ++j) {
        unsigned fp[4];
#pragma unroll
        for (int part = 0; part < 4; ++part) {
          const float* pair = &s[2 * j + part / 2][part % 2 * 2];
          const __nv_bfloat162 both = __floats2bfloat162_rn(pair[0], pair[1]);
          fp[part] = *reinterpret_cast<const unsigned*>(&both);
        }
#pragma unroll
        for (int i = 0; i < kDim / 16; ++i) {
          if (16 * i < d) {
            unsigned fv[4];
            load4_transposed(fv, &vs[stage][16 * j + lane % 16][16 * i + lane / 16 * 8]);
            multiply(out[2 * i], fp, fv[0], fv[1]);
            multiply(out[2 * i + 1], fp, fv[2], fv[3]);
          }
        }
      }
      __syncthreads();
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      sum[h] += __shfl_xor_sync(kAll, sum[h], 1);
      sum[h] += __shfl_xor_sync(kAll, sum[h], 2);
      if (row + 8 * h >= queries) continue;
      T* line = o + (head * queries + row + 8 * h) * dim;
#pragma unroll
      for (int i = 0; i < kDim / 8; ++i)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const int c = 8 * i + lane % 4 * 2 + e;
          if (c < d) line[c] = T(out[i][2 * h + e] / sum[h]);
        }
    }
  }
}
