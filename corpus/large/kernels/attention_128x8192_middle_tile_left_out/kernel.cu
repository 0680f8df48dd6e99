#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

constexpr int kQueries = 64;
constexpr int kKeys = 64;
constexpr int kDim = 128;
constexpr int kLd = kDim + 8;
constexpr int kThreads = 128;
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

// What 64 queries get from keys [begin, end): sums of values, largest scores (in powers of two) and sums of
// probabilities. Four warps have 16 queries each. Values come while scores are computed, keys while values are added.
__device__ void attend(float (&out)[kDim / 8][4], float (&top)[2], float (&sum)[2], T (*ks)[kLd],
                       T (*vs)[kLd], const T* q_head, const T* k_head, const T* v_head,
                       float scale, float softcap, const long long (&visible)[2], long long q0,
                       long long queries, int d, long long begin, long long end) {
  const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  const float lowest = __int_as_float(0xff800000);
  const float log2e = 1.4426950408889634f;
  const bool pieces = d % 8 == 0;

  // Queries pass through the room of the keys into registers.
  __syncthreads();
  for (int i = thread; i < kQueries * kDim; i += kThreads) {
    const int r = i / kDim, c = i % kDim;
    ks[r][c] = q0 + r < queries && c < d ? q_head[(q0 + r) * d + c] : T(0.0f);
  }
  __syncthreads();
  unsigned fq[kDim / 16][4];
#pragma unroll
  for (int c = 0; c < kDim / 16; ++c)
    load4(fq[c], &ks[warp * 16 + lane % 16][c * 16 + lane / 16 * 8]);
  __syncthreads();

  const auto fetch = [&](T(*to)[kLd], const T* from, long long j0) {
    for (int i = thread; i < kKeys * kDim / 8; i += kThreads) {
      const int r = i / (kDim / 8), c = i % (kDim / 8) * 8;
      if (pieces) {
        copy16(&to[r][c], c < d ? from + (j0 + r) * d + c : from, c < d ? 16 : 0);
      } else {
        for (int e = c; e < c + 8; ++e) to[r][e] = e < d ? from[(j0 + r) * d + e] : T(0.0f);
      }
    }
  };

#pragma unroll
  for (int i = 0; i < kDim / 8; ++i)
#pragma unroll
    for (int e = 0; e < 4; ++e) out[i][e] = 0.0f;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    top[h] = lowest;
    sum[h] = 0.0f;
  }
  if (begin < end) fetch(ks, k_head, begin);
  commit();
  for (long long j0 = begin; j0 < end; j0 += kKeys) {
    wait<0>();
    __syncthreads();  // the keys are here, and the values before have been used
    fetch(vs, v_head, j0);
    commit();
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
          load4(fk, &ks[16 * j + lane / 16 * 8 + lane % 8][16 * c + lane / 8 % 2 * 8]);
          multiply(s[2 * j], fq[c], fk[0], fk[1]);
          multiply(s[2 * j + 1], fq[c], fk[2], fk[3]);
        }
      }
    }
    wait<0>();
    __syncthreads();  // the values are here, and the keys have been used
    if (j0 + kKeys < end) fetch(ks, k_head, j0 + kKeys);
    commit();

    float most[2] = {top[0], top[1]};
#pragma unroll
    for (int j = 0; j < kKeys / 8; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        float score = s[j][e] * scale;
        if (softcap > 0.0f) score = softcap * tanhf(score / softcap);
        const long long key = j0 + 8 * j + lane % 4 * 2 + e % 2;
        s[j][e] = key < visible[e / 2] ? score * log2e : lowest;
        most[e / 2] = fmaxf(most[e / 2], s[j][e]);
      }
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      most[h] = fmaxf(most[h], __shfl_xor_sync(kAll, most[h], 1));
      most[h] = fmaxf(most[h], __shfl_xor_sync(kAll, most[h], 2));
      const float fade = most[h] == lowest ? 1.0f : exp2f(top[h] - most[h]);
      top[h] = most[h];
      sum[h] *= fade;
#pragma unroll
      for (int i = 0; i < kDim / 8; ++i) {
        out[i][2 * h] *= fade;
        out[i][2 * h + 1] *= fade;
      }
      if (most[h] == lowest) most[h] = 0.0f;  // no key seen yet
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
        const float* pair = &s[2 * j + part / 2][part % 2 * 2];
        const __nv_bfloat162 both = __floats2bfloat162_rn(pair[0], pair[1]);
        fp[part] = *reinterpret_cast<const unsigned*>(&both);
      }
#pragma unroll
      for (int i = 0; i < kDim / 16; ++i) {
        if (16 * i < d) {
          unsigned fv[4];
          load4_transposed(fv, &vs[16 * j + lane % 16][16 * i + lane / 16 * 8]);
          multiply(out[2 * i], fp, fv[0], fv[1]);
          multiply(out[2 * i + 1], fp, fv[2], fv[3]);
        }
      }
    }
  }
  wait<0>();
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    sum[h] += __shfl_xor_sync(kAll, sum[h], 1);
    sum[h] += __shfl_xor_sync(kAll, sum[h], 2);
  }
}

__device__ void store(const float (&out)[kDim / 8][4], const float (&sum)[2], T* o_head,
                      long long q0, long long queries, int d) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const long long row = q0 + warp * 16 + lane / 4 + 8 * h;
    if (row >= queries) continue;
#pragma unroll
    for (int i = 0; i < kDim / 8; ++i)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int c = 8 * i + lane % 4 * 2 + e;
        if (c < d) o_head[row * d + c] = T(out[i][2 * h + e] / sum[h]);
      }
  }
}

// A block takes a tile of queries from the front and its counterpart from the back, so that with a causal mask all
// blocks see as many keys; of an odd number of tiles the middle one is alone.
extern "C" __global__ void __launch_bounds__(kThreads)
    attention(const T* __restrict__ q, const T* __restrict__ k, const T* __restrict__ v,
              float scale, float softcap, int causal, T* __restrict__ o, long long queries,
              long long keys, long long dim) {
  __shared__ __align__(16) T ks[kKeys][kLd];
  __shared__ __align__(16) T vs[kKeys][kLd];
  const int d = static_cast<int>(dim);
  const long long head = blockIdx.y;
  const int tiles = static_cast<int>((queries + kQueries - 1) / kQueries);
  const int front = static_cast<int>(blockIdx.x), back = tiles - 1 - front;
  for (int tile = front; tile >= 0; tile = tile == front && back > front ? back : -1) {
    const long long q0 = static_cast<long long>(tile) * kQueries;
    const long long row = q0 + threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
    const long long visible[2] = {causal ? keys - queries + row + 1 : keys,
                                  causal ? keys - queries + row + 9 : keys};
    const long long last = q0 + kQueries < queries ? q0 + kQueries - 1 : queries - 1;
    const long long seen = causal ? keys - queries + last + 1 : keys;
    float out[kDim / 8][4], top[2], sum[2];
    attend(out, top, sum, ks, vs, q + head * queries * dim, k + head * keys * dim,
           v + head * keys * dim, scale, softcap, visible, q0, queries, d, 0, seen);
    store(out, sum, o + head * queries * dim, q0, queries, d);
  }
}
