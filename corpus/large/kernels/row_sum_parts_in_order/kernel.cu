// Sums of rows in f32. Short rows: a warp each. Long rows: parts of 16384 columns, handed out to a fixed number of blocks by a ticket;
// the block that finishes a row's last part adds up the row's partial sums, in the order of the parts.
using T = ASSAY_T;
static_assert(sizeof(T) == 4, "written for f32");

constexpr unsigned kPart = 16384;
constexpr int kThreads = 256;
constexpr unsigned kAll = 0xffffffffu;

__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(kAll, value, offset);
  return value;
}

// The sum of what thread `rank` of `ranks` has to add of `count` values; four at a time where each row starts at 16 bytes.
__device__ __forceinline__ float strided_sum(const float* __restrict__ values, unsigned count, bool vectors, unsigned rank,
                                             unsigned ranks) {
  float sum = 0.0f;
  if (vectors) {
    const float4* __restrict__ quads = reinterpret_cast<const float4*>(values);
    float more = 0.0f;
    unsigned i = rank;
    for (; i + ranks < count / 4; i += 2 * ranks) {
      const float4 v = quads[i];
      const float4 w = quads[i + ranks];
      sum += (v.x + v.y) + (v.z + v.w);
      more += (w.x + w.y) + (w.z + w.w);
    }
    if (i < count / 4) {
      const float4 v = quads[i];
      sum += (v.x + v.y) + (v.z + v.w);
    }
    sum += more;
  } else {
    for (unsigned i = rank; i < count; i += ranks) sum += values[i];
  }
  return sum;
}

extern "C" __global__ void __launch_bounds__(kThreads) short_rows(const T* __restrict__ x, T* __restrict__ y, long long rows,
                                                                  long long columns) {
  const int lane = threadIdx.x % 32;
  const long long stride = static_cast<long long>(gridDim.x) * (kThreads / 32);
  for (long long row = static_cast<long long>(blockIdx.x) * (kThreads / 32) + threadIdx.x / 32; row < rows; row += stride) {
    const float sum =
        warp_sum(strided_sum(x + row * columns, static_cast<unsigned>(columns), columns % 4 == 0, lane, 32));
    if (lane == 0) y[row] = sum;
  }
}

extern "C" __global__ void __launch_bounds__(kThreads) long_rows(const T* __restrict__ x, T* __restrict__ y, float* partial,
                                                                 unsigned* done, unsigned* ticket, long long rows, long long columns) {
  __shared__ float warp_sums[kThreads / 32];
  __shared__ unsigned next_item;
  const unsigned parts = static_cast<unsigned>((columns + kPart - 1) / kPart);
  const unsigned items = static_cast<unsigned>(rows) * parts;  // at most 2^26
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  for (;;) {
    __syncthreads();
    if (threadIdx.x == 0) next_item = atomicAdd(ticket, 1u);
    __syncthreads();
    const unsigned item = next_item;
    if (item >= items) return;
    const unsigned row = item / parts;
    const unsigned part = item % parts;
    const long long begin = static_cast<long long>(part) * kPart;
    const unsigned count = static_cast<unsigned>(min(static_cast<long long>(kPart), columns - begin));
    float sum = strided_sum(x + row * columns + begin, count, columns % 4 == 0, threadIdx.x, kThreads);
    sum = warp_sum(sum);
    if (lane == 0) warp_sums[warp] = sum;
    __syncthreads();
    if (warp != 0) continue;
    sum = warp_sum(lane < kThreads / 32 ? warp_sums[lane] : 0.0f);
    if (parts == 1) {
      if (lane == 0) y[row] = sum;
      continue;
    }
    unsigned before = 0;
    if (lane == 0) {
      partial[static_cast<size_t>(row) * parts + part] = sum;
      __threadfence();
      before = atomicAdd(&done[row], 1u);
    }
    before = __shfl_sync(kAll, before, 0);
    if (before != parts - 1) continue;
    __threadfence();
    __syncwarp();
    float total = 0.0f;
    for (unsigned p = lane; p < parts; p += 32) total += __ldcg(&partial[static_cast<size_t>(row) * parts + p]);
    total = warp_sum(total);
    if (lane == 0) y[row] = total;
  }
}
