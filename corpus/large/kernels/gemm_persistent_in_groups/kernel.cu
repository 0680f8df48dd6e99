// bf16 GEMM, row-major, mma.sync m16n8k16: tiles of 128 x 128 x 32, eight warps of 64 x 32, a
// cp.async pipeline of four stages.
//   gemm_tiles  persistent blocks; tiles in groups of eight row blocks, for L2
//   gemm_split  few tiles and a long k: four splits of k into f32 workspace; gemm_merge adds them
#include <cuda_bf16.h>
#include <cuda_pipeline.h>

using bf16 = __nv_bfloat16;
using u32 = unsigned;

constexpr int kThreads = 256;
constexpr int kM = 128;
constexpr int kN = 128;
constexpr int kK = 32;
constexpr int kStages = 4;
constexpr int kSplits = 4;
constexpr int kGroup = 8;
constexpr int kLineA = kK + 8;
constexpr int kLineB = kN + 8;
constexpr int kStageA = kM * kLineA;
constexpr int kStageB = kK * kLineB;

struct Shape {
  const bf16* a;
  const bf16* b;
  long long m, n, k;
};

__device__ __forceinline__ void mma(float (&d)[4], const u32 (&a)[4], const u32 (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ __forceinline__ void ldmatrix4(u32 (&f)[4], const bf16* p) {
  const u32 at = static_cast<u32>(__cvta_generic_to_shared(p));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(f[0]), "=r"(f[1]), "=r"(f[2]), "=r"(f[3])
               : "r"(at)
               : "memory");
}

__device__ __forceinline__ void ldmatrix2_trans(u32 (&f)[2], const bf16* p) {
  const u32 at = static_cast<u32>(__cvta_generic_to_shared(p));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];\n"
               : "=r"(f[0]), "=r"(f[1])
               : "r"(at)
               : "memory");
}

// Eight neighbours of a row into shared memory; those from `valid` on are zeros.
__device__ __forceinline__ void fetch8(bf16* to, const bf16* __restrict__ from, long long valid,
                                       bool aligned) {
  if (aligned && valid >= 8) {
    __pipeline_memcpy_async(to, from, 16);
    return;
  }
  __align__(16) bf16 held[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) held[i] = i < valid ? from[i] : __float2bfloat16_rn(0.0f);
  *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(held);
}

__device__ __forceinline__ void fetch(bf16* as, bf16* bs, const Shape& s, long long row0,
                                      long long col0, long long k0) {
  const bool aligned_a = s.k % 8 == 0;
  const bool aligned_b = s.n % 8 == 0;
#pragma unroll
  for (int u = 0; u < 2; ++u) {
    const int i = threadIdx.x + u * kThreads;
    const int r = i >> 2;
    const int c = (i & 3) * 8;
    const long long row = row0 + r;
    const long long at = row * s.k + k0 + c;
    fetch8(as + r * kLineA + c, s.a + at, row < s.m ? s.k - (k0 + c) : 0, aligned_a);
  }
#pragma unroll
  for (int u = 0; u < 2; ++u) {
    const int i = threadIdx.x + u * kThreads;
    const int r = i >> 4;
    const int c = (i & 15) * 8;
    const long long row = k0 + r;
    const long long at = row * s.n + col0 + c;
    fetch8(bs + r * kLineB + c, s.b + at, row < s.k ? s.n - (col0 + c) : 0, aligned_b);
  }
}

// The 128 x 128 products at (row0, col0) over the steps [begin, end) of 32 along k.
__device__ __forceinline__ void multiply(float (&acc)[4][4][4], bf16* memory, const Shape& s,
                                         long long row0, long long col0, int begin, int end) {
  bf16* as = memory;
  bf16* bs = memory + kStages * kStageA;
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int wm = (warp >> 2) * 64;
  const int wn = (warp & 3) * 32;
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) acc[i][j][e] = 0.0f;

  for (int p = 0; p < kStages - 1; ++p) {
    if (begin + p < end)
      fetch(as + p * kStageA, bs + p * kStageB, s, row0, col0,
            static_cast<long long>(begin + p) * kK);
    __pipeline_commit();
  }
  int stage = 0;
  for (int step = begin; step < end; ++step) {
    __pipeline_wait_prior(kStages - 2);
    __syncthreads();
    // The stage that was read in the last step is free now.
    const int ahead = step + kStages - 1;
    const int refill = stage == 0 ? kStages - 1 : stage - 1;
    if (ahead < end)
      fetch(as + refill * kStageA, bs + refill * kStageB, s, row0, col0,
            static_cast<long long>(ahead) * kK);
    __pipeline_commit();

    const bf16* at = as + stage * kStageA;
    const bf16* bt = bs + stage * kStageB;
#pragma unroll
    for (int kk = 0; kk < kK; kk += 16) {
      u32 fa[4][4], fb[4][2];
#pragma unroll
      for (int i = 0; i < 4; ++i)
        ldmatrix4(fa[i], at + (wm + i * 16 + (lane & 15)) * kLineA + kk + (lane >> 4) * 8);
#pragma unroll
      for (int j = 0; j < 4; ++j)
        ldmatrix2_trans(fb[j], bt + (kk + (lane & 15)) * kLineB + wn + j * 8);
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) mma(acc[i][j], fa[i], fb[j]);
    }
    stage = stage + 1 == kStages ? 0 : stage + 1;
  }
  __pipeline_wait_prior(0);
  __syncthreads();  // the next tile fills the same stages
}

extern "C" __global__ void __launch_bounds__(kThreads)
gemm_tiles(const bf16* __restrict__ a, const bf16* __restrict__ b, bf16* __restrict__ c,
           long long m, long long n, long long k) {
  extern __shared__ uint4 memory[];
  const Shape shape = {a, b, m, n, k};
  const int tiles_m = static_cast<int>((m + kM - 1) / kM);
  const int tiles_n = static_cast<int>((n + kN - 1) / kN);
  const int steps = static_cast<int>((k + kK - 1) / kK);
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  for (int tile = blockIdx.x; tile < tiles_m * tiles_n; tile += gridDim.x) {
    const int group = tile / (kGroup * tiles_n);
    const int first = group * kGroup;
    const int high = min(tiles_m - first, kGroup);  // the last group may be lower
    const int within = tile - group * kGroup * tiles_n;
    const long long row0 = static_cast<long long>(first + within % high) * kM;
    const long long col0 = static_cast<long long>(within / high) * kN;
    float acc[4][4][4];
    multiply(acc, reinterpret_cast<bf16*>(memory), shape, row0, col0, 0, steps);
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const long long row = row0 + (warp >> 2) * 64 + i * 16 + (lane >> 2) + h * 8;
        if (row >= m) continue;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const long long col = col0 + (warp & 3) * 32 + j * 8 + 2 * (lane & 3);
          bf16* to = c + row * n + col;
          if (n % 2 == 0) {
            if (col < n)
              *reinterpret_cast<__nv_bfloat162*>(to) =
                  __floats2bfloat162_rn(acc[i][j][2 * h], acc[i][j][2 * h + 1]);
          } else {
            if (col < n) to[0] = __float2bfloat16_rn(acc[i][j][2 * h]);
            if (col + 1 < n) to[1] = __float2bfloat16_rn(acc[i][j][2 * h + 1]);
          }
        }
      }
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
gemm_split(const bf16* __restrict__ a, const bf16* __restrict__ b, float* __restrict__ parts,
           long long m, long long n, long long k) {
  extern __shared__ uint4 memory[];
  const Shape shape = {a, b, m, n, k};
  const int tiles_m = static_cast<int>((m + kM - 1) / kM);
  const int steps = static_cast<int>((k + kK - 1) / kK);
  const int each = (steps + kSplits - 1) / kSplits;
  const int begin = blockIdx.y * each;
  const int end = min(begin + each, steps);
  const long long row0 = static_cast<long long>(blockIdx.x % tiles_m) * kM;
  const long long col0 = static_cast<long long>(blockIdx.x / tiles_m) * kN;
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  float acc[4][4][4];
  multiply(acc, reinterpret_cast<bf16*>(memory), shape, row0, col0, begin, end);
  float* out = parts + blockIdx.y * m * n;
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const long long row = row0 + (warp >> 2) * 64 + i * 16 + (lane >> 2) + h * 8;
      if (row >= m) continue;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const long long col = col0 + (warp & 3) * 32 + j * 8 + 2 * (lane & 3);
        if (col < n) out[row * n + col] = acc[i][j][2 * h];
        if (col + 1 < n) out[row * n + col + 1] = acc[i][j][2 * h + 1];
      }
    }
}

extern "C" __global__ void __launch_bounds__(kThreads)
gemm_merge(const float* __restrict__ parts, bf16* __restrict__ c, long long m, long long n) {
  const long long i = static_cast<long long>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= m * n) return;
  float sum = 0.0f;
#pragma unroll
  for (int s = 0; s < kSplits; ++s) sum += parts[s * m * n + i];
  c[i] = __float2bfloat16_rn(sum);
}
