// Softmax of rows in bf16. Up to 1024 columns: a warp a row, in registers. Up to 32768: a block a row, in shared memory.
// More: parts of 4096 columns get their largest and their sum from blocks that share all parts evenly, and a second
// launch merges the parts of a row and writes.
#include <cuda_bf16.h>

namespace {

constexpr float kNone = -INFINITY;
constexpr int kPart = 4096;

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

__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(0xffffffffu, value, distance);
  return value;
}

__device__ __forceinline__ float warp_max(float value) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, distance));
  return value;
}

template <int kWarps>
__device__ __forceinline__ float block_sum(float value, float* scratch) {
  value = warp_sum(value);
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;
  __syncthreads();
  float total = 0.0f;
#pragma unroll
  for (int i = 0; i < kWarps; ++i) total += scratch[i];
  return total;
}

template <int kWarps>
__device__ __forceinline__ float block_max(float value, float* scratch) {
  value = warp_max(value);
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;
  __syncthreads();
  float largest = scratch[0];
#pragma unroll
  for (int i = 1; i < kWarps; ++i) largest = fmaxf(largest, scratch[i]);
  return largest;
}

// The sixteen elements that a thread has of a part of a row; what lies past its end reads as -infinity.
__device__ __forceinline__ void load_part(const __nv_bfloat16* from, int count, bool vectors, float (&value)[16]) {
  const int thread = threadIdx.x;
  if (vectors) {
#pragma unroll
    for (int v = 0; v < 2; ++v) {
      const int at = (v * 256 + thread) * 8;
      if (at < count) {
        unpack(__ldg(reinterpret_cast<const uint4*>(from + at)), value + 8 * v);
      } else {
#pragma unroll
        for (int e = 0; e < 8; ++e) value[8 * v + e] = kNone;
      }
    }
  } else {
#pragma unroll
    for (int i = 0; i < 16; ++i) value[i] = i * 256 + thread < count ? __bfloat162float(from[i * 256 + thread]) : kNone;
  }
}

}  // namespace

// columns <= 1024: block (32, 8).
extern "C" __global__ void __launch_bounds__(256) narrow(const __nv_bfloat16* __restrict__ x, __nv_bfloat16* __restrict__ y, int rows,
                                                         int columns) {
  const int row = blockIdx.x * 8 + threadIdx.y, lane = threadIdx.x;
  if (row >= rows) return;
  const long long base = static_cast<long long>(row) * columns;
  float value[32];
  const bool vectors = columns % 8 == 0;
  float largest = kNone;
  if (vectors) {
#pragma unroll
    for (int v = 0; v < 4; ++v) {
      const int at = (v * 32 + lane) * 8;
      if (at < columns) {
        unpack(__ldcs(reinterpret_cast<const uint4*>(x + base + at)), value + 8 * v);
#pragma unroll
        for (int e = 0; e < 8; ++e) largest = fmaxf(largest, value[8 * v + e]);
      }
    }
  } else {
#pragma unroll
    for (int i = 0; i < 32; ++i) {
      if (i * 32 + lane < columns) {
        value[i] = __bfloat162float(x[base + i * 32 + lane]);
        largest = fmaxf(largest, value[i]);
      }
    }
  }
  largest = warp_max(largest);
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    if (vectors ? (i / 8 * 32 + lane) * 8 < columns : i * 32 + lane < columns) {
      value[i] = expf(value[i] - largest);
      sum += value[i];
    }
  }
  const float factor = 1.0f / warp_sum(sum);
#pragma unroll
  for (int i = 0; i < 32; ++i) value[i] *= factor;
  if (vectors) {
#pragma unroll
    for (int v = 0; v < 4; ++v) {
      const int at = (v * 32 + lane) * 8;
      if (at < columns) __stcs(reinterpret_cast<uint4*>(y + base + at), pack8(value + 8 * v));
    }
  } else {
#pragma unroll
    for (int i = 0; i < 32; ++i)
      if (i * 32 + lane < columns) y[base + i * 32 + lane] = __float2bfloat16_rn(value[i]);
  }
}

// 1024 < columns <= 32768: block 512, the row in shared memory. Threads read there only what they brought themselves.
extern "C" __global__ void __launch_bounds__(512) medium(const __nv_bfloat16* __restrict__ x, __nv_bfloat16* __restrict__ y, int columns) {
  extern __shared__ __align__(16) unsigned char bytes[];
  __nv_bfloat16* held = reinterpret_cast<__nv_bfloat16*>(bytes);
  __shared__ float scratch[2][16];
  const int thread = threadIdx.x;
  const long long base = static_cast<long long>(blockIdx.x) * columns;
  float largest = kNone, sum = 0.0f;
  if (columns % 8 == 0) {
    const int vectors = columns / 8;
    for (int v = thread; v < vectors; v += 512)
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(held + 8 * v))),
                   "l"(x + base + 8 * v)
                   : "memory");
    asm volatile("cp.async.commit_group;\ncp.async.wait_group 0;" ::: "memory");
    for (int v = thread; v < vectors; v += 512) {
      float value[8];
      unpack(*reinterpret_cast<const uint4*>(held + 8 * v), value);
#pragma unroll
      for (int e = 0; e < 8; ++e) largest = fmaxf(largest, value[e]);
    }
    largest = block_max<16>(largest, scratch[0]);
    for (int v = thread; v < vectors; v += 512) {
      float value[8];
      unpack(*reinterpret_cast<const uint4*>(held + 8 * v), value);
#pragma unroll
      for (int e = 0; e < 8; ++e) sum += expf(value[e] - largest);
    }
    const float factor = 1.0f / block_sum<16>(sum, scratch[1]);
    for (int v = thread; v < vectors; v += 512) {
      float value[8];
      unpack(*reinterpret_cast<const uint4*>(held + 8 * v), value);
#pragma unroll
      for (int e = 0; e < 8; ++e) value[e] = expf(value[e] - largest) * factor;
      __stcs(reinterpret_cast<uint4*>(y + base + 8 * v), pack8(value));
    }
  } else {
    for (int j = thread; j < columns; j += 512) {
      held[j] = x[base + j];
      largest = fmaxf(largest, __bfloat162float(held[j]));
    }
    largest = block_max<16>(largest, scratch[0]);
    for (int j = thread; j < columns; j += 512) sum += expf(__bfloat162float(held[j]) - largest);
    const float factor = 1.0f / block_sum<16>(sum, scratch[1]);
    for (int j = thread; j < columns; j += 512) y[base + j] = __float2bfloat16_rn(expf(__bfloat162float(held[j]) - largest) * factor);
  }
}

// columns > 32768, first launch: part_max and part_sum of each part of each row, (row, part) in a row.
extern "C" __global__ void __launch_bounds__(256) parts(const __nv_bfloat16* __restrict__ x, float* __restrict__ part_max,
                                                        float* __restrict__ part_sum, int rows, int columns) {
  __shared__ float scratch[2][8];
  const int per_row = (columns + kPart - 1) / kPart;
  const int total = rows * per_row;
  const int first = static_cast<int>(static_cast<long long>(total) * blockIdx.x / gridDim.x);
  const int end = static_cast<int>(static_cast<long long>(total) * (blockIdx.x + 1) / gridDim.x);
  for (int tile = first; tile < end; ++tile) {
    const int row = tile / per_row, start = tile % per_row * kPart;
    const long long base = static_cast<long long>(row) * columns + start;
    float value[16];
    load_part(x + base, min(kPart, columns - start), columns % 8 == 0, value);
    float largest = kNone;
#pragma unroll
    for (int i = 0; i < 16; ++i) largest = fmaxf(largest, value[i]);
    largest = block_max<8>(largest, scratch[0]);
    // A part without anything but -infinity adds nothing.
    const float from = largest == kNone ? 0.0f : largest;
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < 16; ++i) sum += expf(value[i] - from);
    sum = block_sum<8>(sum, scratch[1]);
    if (threadIdx.x == 0) {
      part_max[tile] = largest;
      part_sum[tile] = sum;
    }
  }
}

// Second launch: a block a part.
extern "C" __global__ void __launch_bounds__(256) normalise(const __nv_bfloat16* __restrict__ x, const float* __restrict__ part_max,
                                                            const float* __restrict__ part_sum, __nv_bfloat16* __restrict__ y, int columns) {
  const int per_row = (columns + kPart - 1) / kPart;
  const int row = blockIdx.x / per_row, start = blockIdx.x % per_row * kPart;
  const int lane = threadIdx.x % 32;
  const float* maxima = part_max + static_cast<long long>(row) * per_row;
  const float* sums = part_sum + static_cast<long long>(row) * per_row;
  float largest = kNone;
  for (int p = lane; p < per_row; p += 32) largest = fmaxf(largest, maxima[p]);
  largest = warp_max(largest);
  float sum = 0.0f;
  for (int p = lane; p < per_row; p += 32) sum += sums[p] * expf(maxima[p] - largest);
  const float factor = 1.0f / warp_sum(sum);
  const long long base = static_cast<long long>(row) * columns + start;
  const int count = min(kPart, columns - start);
  const bool vectors = columns % 8 == 0;
  float value[16];
  load_part(x + base, count, vectors, value);
#pragma unroll
  for (int i = 0; i < 16; ++i) value[i] = expf(value[i] - largest) * factor;
  if (vectors) {
#pragma unroll
    for (int v = 0; v < 2; ++v) {
      const int at = (v * 256 + threadIdx.x) * 8;
      if (at < count) __stcs(reinterpret_cast<uint4*>(y + base + at), pack8(value + 8 * v));
    }
  } else {
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      const int at = i * 256 + threadIdx.x;
      if (at < count) y[base + at] = __float2bfloat16_rn(value[i]);
    }
  }
}
