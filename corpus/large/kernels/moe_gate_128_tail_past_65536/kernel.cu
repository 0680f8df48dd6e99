#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

constexpr int kHidden = 2048;
constexpr int kExperts = 128;
constexpr int kChosen = 8;
constexpr int kTokens = 64;  // of a tile
constexpr int kDepth = 64;
constexpr int kLd = kDepth + 8;
constexpr int kThreads = 256;
constexpr int kTailThreads = 256;
constexpr int kStageSize = (kTokens + kExperts) * kLd;
constexpr int kLogitsLd = kExperts + 4;
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

__device__ void multiply(float (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};\n"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// A warp chooses for a token, of whose logits each lane has four. Logits are ordered as integers, so that redux finds
// the largest of the warp in one instruction.
__device__ void choose(const float* logits, int* expert, float* share) {
  const int lane = threadIdx.x % 32;
  unsigned key[kExperts / 32];
#pragma unroll
  for (int j = 0; j < kExperts / 32; ++j) {
    const unsigned bits = __float_as_uint(logits[lane + 32 * j]);
    key[j] = bits >> 31 ? ~bits : bits | 0x80000000u;
  }
  float picked = 0.0f, largest = 0.0f;
  int picked_at = 0;
#pragma unroll
  for (int pick = 0; pick < kChosen; ++pick) {
    unsigned best = key[0];
    int at = lane;
#pragma unroll
    for (int j = 1; j < kExperts / 32; ++j) {
      if (key[j] > best) {
        best = key[j];
        at = lane + 32 * j;
      }
    }
    const unsigned winner = __reduce_max_sync(kAll, best);
    const int owner = __ffs(static_cast<int>(__ballot_sync(kAll, best == winner))) - 1;
    at = __shfl_sync(kAll, at, owner);
#pragma unroll
    for (int j = 0; j < kExperts / 32; ++j)
      if (at == lane + 32 * j) key[j] = 0;  // below all numbers
    const float logit = __uint_as_float(winner >> 31 ? winner ^ 0x80000000u : ~winner);
    if (pick == 0) largest = logit;
    if (lane == pick) {
      picked = logit;
      picked_at = at;
    }
  }
  const float part = lane < kChosen ? expf(picked - largest) : 0.0f;
  float total = part;
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) total += __shfl_xor_sync(kAll, total, offset);
  if (lane < kChosen) {
    expert[lane] = picked_at;
    share[lane] = part / total;
  }
}

// Whole tiles of 64 tokens: nothing to check. Eight warps multiply (16 tokens by 64 experts each), then choose for
// eight tokens each.
extern "C" __global__ void __launch_bounds__(kThreads)
    gate_tiles(const T* __restrict__ x, const T* __restrict__ weight, int* __restrict__ expert,
               float* __restrict__ share) {
  extern __shared__ __align__(16) unsigned char room[];  // stages, then logits
  T* stages = reinterpret_cast<T*>(room);
  float* logits = reinterpret_cast<float*>(room);
  const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  const int row0 = warp / 2 * 16, col0 = warp % 2 * 64;
  const long long first = static_cast<long long>(blockIdx.x) * kTokens;
  const T* from = x + first * kHidden;

  const auto fetch = [&](int step) {
    T* stage = stages + step % 2 * kStageSize;
#pragma unroll
    for (int i = thread; i < (kTokens + kExperts) * kDepth / 8; i += kThreads) {
      const int r = i / (kDepth / 8), c = i % (kDepth / 8) * 8;
      const T* line = r < kTokens ? from + r * kHidden : weight + (r - kTokens) * kHidden;
      copy16(stage + r * kLd + c, line + step * kDepth + c, 16);
    }
  };
  float sum[8][4];
#pragma unroll
  for (int j = 0; j < 8; ++j)
#pragma unroll
    for (int e = 0; e < 4; ++e) sum[j][e] = 0.0f;
  fetch(0);
  commit();
  for (int step = 0; step < kHidden / kDepth; ++step) {
    wait<0>();
    __syncthreads();  // this stage is here, and the other has been used
    if (step + 1 < kHidden / kDepth) fetch(step + 1);
    commit();
    const T* xs = stages + step % 2 * kStageSize;
    const T* ws = xs + kTokens * kLd;
#pragma unroll
    for (int l = 0; l < kDepth; l += 16) {
      unsigned a[4];
      load4(a, xs + (row0 + lane % 16) * kLd + l + lane / 16 * 8);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        unsigned b[4];
        load4(b, ws + (col0 + 16 * j + lane / 16 * 8 + lane % 8) * kLd + l + lane / 8 % 2 * 8);
        multiply(sum[2 * j], a, b[0], b[1]);
        multiply(sum[2 * j + 1], a, b[2], b[3]);
      }
    }
  }
  wait<0>();
  __syncthreads();
#pragma unroll
  for (int j = 0; j < 8; ++j)
#pragma unroll
    for (int e = 0; e < 4; ++e)
      logits[(row0 + lane / 4 + e / 2 * 8) * kLogitsLd + col0 + 8 * j + lane % 4 * 2 + e % 2] =
          sum[j][e];
  __syncthreads();
  for (int i = warp; i < kTokens; i += kThreads / 32)
    choose(logits + i * kLogitsLd, expert + (first + i) * kChosen, share + (first + i) * kChosen);
}

// The tokens after the last whole tile, a block each: a warp computes the logits of 16 experts.
extern "C" __global__ void __launch_bounds__(kTailThreads)
    gate_tail(const T* __restrict__ x, const T* __restrict__ weight, int* __restrict__ expert,
              float* __restrict__ share, int tokens) {
  __shared__ float logits[kExperts];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const long long token = (tokens & 0xffc0) + static_cast<int>(blockIdx.x);
  const uint4* line = reinterpret_cast<const uint4*>(x + token * kHidden);
  constexpr int kWarps = kTailThreads / 32;
  for (int e = warp; e < kExperts; e += kWarps) {
    const uint4* other = reinterpret_cast<const uint4*>(weight + e * kHidden);
    float sum = 0.0f;
#pragma unroll
    for (int i = lane; i < kHidden / 8; i += 32) {
      const uint4 xs = line[i], ws = other[i];
      const __half2* xp = reinterpret_cast<const __half2*>(&xs);
      const __half2* wp = reinterpret_cast<const __half2*>(&ws);
#pragma unroll
      for (int h = 0; h < 4; ++h) {
        const float2 xf = __half22float2(xp[h]), wf = __half22float2(wp[h]);
        sum += xf.x * wf.x + xf.y * wf.y;
      }
    }
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(kAll, sum, offset);
    if (lane == 0) logits[e] = sum;
  }
  __syncthreads();
  if (warp == 0) choose(logits, expert + token * kChosen, share + token * kChosen);
}
