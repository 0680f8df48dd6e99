// RMS norm by persistent blocks: rows come into a ring of three buffers by bulk copies, which one
// thread starts and an mbarrier a buffer announces. The weights stay in registers.
#include <cuda_fp16.h>

namespace {

constexpr int kHidden = 4096;
constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kStages = 3;
constexpr unsigned kRowBytes = kHidden * sizeof(__half);
constexpr int kVectors = kHidden / 8 / kThreads;

__device__ __forceinline__ unsigned smem_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void start_copy(__half* to, const __half* from, unsigned long long* full) {
  asm volatile(
      "{\n"
      ".reg .b64 state;\n"
      "mbarrier.arrive.expect_tx.shared::cta.b64 state, [%0], %1;\n"
      "}" ::"r"(smem_address(full)),
      "r"(kRowBytes)
      : "memory");
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
          smem_address(to)),
      "l"(from), "r"(kRowBytes), "r"(smem_address(full))
      : "memory");
}

__device__ __forceinline__ void wait(unsigned long long* full, unsigned parity) {
  unsigned done = 0;
  while (done == 0) {
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n"
        "}"
        : "=r"(done)
        : "r"(smem_address(full)), "r"(parity)
        : "memory");
  }
}

__device__ __forceinline__ void unpack(const uint4& v, float (&x)[8]) {
  const unsigned words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 both = __half22float2(*reinterpret_cast<const __half2*>(&words[i]));
    x[2 * i] = both.x;
    x[2 * i + 1] = both.y;
  }
}

__device__ __forceinline__ unsigned pack(float low, float high) {
  const __half2 both = __floats2half2_rn(low, high);
  return *reinterpret_cast<const unsigned*>(&both);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads)
    rms_norm(const __half* __restrict__ x, const __half* __restrict__ weight, float eps,
             __half* __restrict__ y, long long tokens) {
  __shared__ __align__(128) __half rows[kStages][kHidden];
  __shared__ __align__(8) unsigned long long full[kStages];
  __shared__ float sums[2][kWarps];

  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s)
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(smem_address(&full[s])) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) {
      const long long row = blockIdx.x + static_cast<long long>(s) * gridDim.x;
      if (row < tokens) start_copy(rows[s], x + row * kHidden, &full[s]);
    }
  }

  float w[kVectors][8];
#pragma unroll
  for (int v = 0; v < kVectors; ++v)
    unpack(*reinterpret_cast<const uint4*>(weight + (v * kThreads + threadIdx.x) * 8), w[v]);

  int slot = 0;
  unsigned phase = 0;
  int turn = 0;
  for (long long row = blockIdx.x; row < tokens; row += gridDim.x) {
    wait(&full[slot], phase);
    float value[kVectors][8];
    float squares = 0.0f;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      unpack(*reinterpret_cast<const uint4*>(&rows[slot][(v * kThreads + threadIdx.x) * 8]), value[v]);
#pragma unroll
      for (int e = 0; e < 8; ++e) squares += value[v][e] * value[v][e];
    }
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2)
      squares += __shfl_xor_sync(0xffffffffu, squares, distance);
    if (lane == 0) sums[turn][warp] = squares;
    __syncthreads();
    // All of the row is in registers: its buffer takes the row three turns ahead.
    if (threadIdx.x == 0) {
      const long long ahead = row + static_cast<long long>(kStages) * gridDim.x;
      if (ahead < tokens) {
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        start_copy(rows[slot], x + ahead * kHidden, &full[slot]);
      }
    }
    float total = 0.0f;
#pragma unroll
    for (int i = 0; i < kWarps; ++i) total += sums[turn][i];
    const float scale = rsqrtf(total / kHidden + eps);
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      uint4 result;
      result.x = pack(value[v][0] * scale * w[v][0], value[v][1] * scale * w[v][1]);
      result.y = pack(value[v][2] * scale * w[v][2], value[v][3] * scale * w[v][3]);
      result.z = pack(value[v][4] * scale * w[v][4], value[v][5] * scale * w[v][5]);
      result.w = pack(value[v][6] * scale * w[v][6], value[v][7] * scale * w[v][7]);
      *reinterpret_cast<uint4*>(y + row * kHidden + (v * kThreads + threadIdx.x) * 8) = result;
    }
    turn ^= 1;
    if (++slot == kStages) {
      slot = 0;
      phase ^= 1;
    }
  }
}
