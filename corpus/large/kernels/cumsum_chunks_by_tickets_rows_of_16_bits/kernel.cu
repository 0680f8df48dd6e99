// Prefix sums of rows in bf16. Up to 1024 columns: 8 or 32 lanes a row. More: one pass over chunks of 4096 columns, which
// blocks take by ticket. A block announces the sum of its chunk, and adds up those of all chunks before it in the row,
// always in the same order.
#include <cuda_bf16.h>

namespace {

constexpr int kThreads = 256;
constexpr int kChunk = 4096;

__device__ __forceinline__ void unpack(const uint4& bits, float* to) {
  const unsigned words[4] = {bits.x, bits.y, bits.z, bits.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    to[2 * i] = __uint_as_float(words[i] << 16);
    to[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
  }
}

__device__ __forceinline__ unsigned pack(float low, float high) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const unsigned*>(&both);
}

__device__ __forceinline__ uint4 pack8(const float* v) {
  return make_uint4(pack(v[0], v[1]), pack(v[2], v[3]), pack(v[4], v[5]), pack(v[6], v[7]));
}

template <int kLanes>
__device__ __forceinline__ float scan_lanes(float value, int lane) {
#pragma unroll
  for (int distance = 1; distance < kLanes; distance *= 2) {
    const float left = __shfl_up_sync(0xffffffffu, value, distance, kLanes);
    if (lane >= distance) value += left;
  }
  return value;
}

// A sum that has been announced: its bits below, 1 above. 0 before.
__device__ __forceinline__ unsigned long long look(const unsigned long long* at) {
  unsigned long long value;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
  return value;
}

__device__ __forceinline__ float wait_for(const unsigned long long* at) {
  unsigned long long value;
  do value = look(at);
  while (value >> 32 == 0);
  return __uint_as_float(static_cast<unsigned>(value));
}

}  // namespace

// columns <= 1024: blocks of 256, kLanes lanes a row, 8 columns a lane at a time.
template <int kLanes>
__global__ void __launch_bounds__(256) few(const __nv_bfloat16* __restrict__ x, __nv_bfloat16* __restrict__ y, int rows, int columns) {
  const int row = blockIdx.x * (256 / kLanes) + threadIdx.x / kLanes, lane = threadIdx.x % kLanes;
  const bool inside = row < rows, vectors = columns % 8 == 0;
  const long long base = static_cast<long long>(inside ? row : 0) * columns;
  float carry = 0.0f;
  for (int start = 0; start < columns; start += 8 * kLanes) {
    const int at = start + 8 * lane;
    float value[8] = {};
    if (vectors) {
      if (at < columns) unpack(__ldcs(reinterpret_cast<const uint4*>(x + base + at)), value);
    } else {
#pragma unroll
      for (int e = 0; e < 8; ++e)
        if (at + e < columns) value[e] = __bfloat162float(x[base + at + e]);
    }
#pragma unroll
    for (int e = 1; e < 8; ++e) value[e] += value[e - 1];
    const float through = scan_lanes<kLanes>(value[7], lane);
    float before = __shfl_up_sync(0xffffffffu, through, 1, kLanes);
    before = (lane == 0 ? 0.0f : before) + carry;
    carry += __shfl_sync(0xffffffffu, through, kLanes - 1, kLanes);
#pragma unroll
    for (int e = 0; e < 8; ++e) value[e] += before;
    if (!inside) continue;
    if (vectors) {
      if (at < columns) __stcs(reinterpret_cast<uint4*>(y + base + at), pack8(value));
    } else {
#pragma unroll
      for (int e = 0; e < 8; ++e)
        if (at + e < columns) y[base + at + e] = __float2bfloat16_rn(value[e]);
    }
  }
}

template __global__ void few<8>(const __nv_bfloat16*, __nv_bfloat16*, int, int);
template __global__ void few<32>(const __nv_bfloat16*, __nv_bfloat16*, int, int);

// columns > 1024. Tickets go through the first chunks of all rows, then the second ones, and so on.
extern "C" __global__ void __launch_bounds__(kThreads) chunks(const __nv_bfloat16* __restrict__ x, __nv_bfloat16* __restrict__ y, unsigned* ticket,
                                                              unsigned long long* announced, int rows, int columns) {
  __shared__ __align__(16) __nv_bfloat16 stage[kChunk];
  __shared__ float warp_sums[kThreads / 32];
  __shared__ float carried;
  __shared__ ushort2 taken;  // row, chunk
  const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  const int per_row = (columns + kChunk - 1) / kChunk;
  const unsigned total = static_cast<unsigned>(rows) * per_row;
  const bool vectors = columns % 8 == 0;
  while (true) {
    if (thread == 0) {
      const unsigned tile = atomicAdd(ticket, 1u);
      taken = tile < total ? make_ushort2(tile % rows, tile / rows) : make_ushort2(0, 0xffff);
    }
    __syncthreads();
    const int row = taken.x, chunk = taken.y;
    if (chunk == 0xffff) return;
    const int start = chunk * kChunk, count = min(kChunk, columns - start);
    const long long base = static_cast<long long>(row) * columns + start;

    float value[16] = {};
    if (vectors) {
#pragma unroll
      for (int v = 0; v < 2; ++v) {
        const int at = thread * 16 + v * 8;
        if (at < count) unpack(__ldcs(reinterpret_cast<const uint4*>(x + base + at)), value + 8 * v);
      }
    } else {
      for (int i = thread; i < kChunk; i += kThreads) stage[i] = i < count ? x[base + i] : __float2bfloat16_rn(0.0f);
      __syncthreads();
#pragma unroll
      for (int v = 0; v < 2; ++v) unpack(*reinterpret_cast<const uint4*>(stage + thread * 16 + v * 8), value + 8 * v);
    }
#pragma unroll
    for (int e = 1; e < 16; ++e) value[e] += value[e - 1];
    const float through = scan_lanes<32>(value[15], lane);
    if (lane == 31) warp_sums[warp] = through;
    float before = __shfl_up_sync(0xffffffffu, through, 1);
    if (lane == 0) before = 0.0f;
    __syncthreads();
    float below = 0.0f, whole = 0.0f;
#pragma unroll
    for (int w = 0; w < kThreads / 32; ++w) {
      if (w == warp) below = whole;
      whole += warp_sums[w];
    }
    before += below;

    if (warp == 0) {
      unsigned long long* of_row = announced + static_cast<long long>(row) * per_row;
      if (lane == 0) atomicExch(of_row + chunk, 1ull << 32 | __float_as_uint(whole));
      float sum = 0.0f;
      for (int p = lane; p < chunk; p += 32) sum += wait_for(of_row + p);
#pragma unroll
      for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, distance);
      if (lane == 0) carried = sum;
    }
    __syncthreads();
    before += carried;
#pragma unroll
    for (int e = 0; e < 16; ++e) value[e] += before;
    if (vectors) {
#pragma unroll
      for (int v = 0; v < 2; ++v) {
        const int at = thread * 16 + v * 8;
        if (at < count) __stcs(reinterpret_cast<uint4*>(y + base + at), pack8(value + 8 * v));
      }
    } else {
#pragma unroll
      for (int v = 0; v < 2; ++v) *reinterpret_cast<uint4*>(stage + thread * 16 + v * 8) = pack8(value + 8 * v);
      __syncthreads();
      for (int i = thread; i < count; i += kThreads) y[base + i] = stage[i];
    }
  }
}
