// scatter_add by rows: tokens are counted and ordered by their row, then a block a row adds them up. Rows with very many
// tokens go through a short queue to blocks of 1024 threads, which share out the tokens as well.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

constexpr int kHeavy = 1024, kQueue = 64;  // Tokens of a row that count as many; places in the queue.
constexpr int kScan = 1024, kLight = 128, kColumns = 32, kLanes = 32;

extern "C" __global__ void __launch_bounds__(256) count(const long long* __restrict__ index, int* counts, long long tokens) {
  const long long t = static_cast<long long>(blockIdx.x) * 256 + threadIdx.x;
  if (t < tokens) atomicAdd(counts + index[t], 1);
}

// Where each row's tokens begin, and which rows are heavy. One block.
extern "C" __global__ void __launch_bounds__(kScan) plan(const int* __restrict__ counts, int* __restrict__ starts, int* __restrict__ queue,
                                                         int* queued, int* __restrict__ by_queue, long long rows) {
  __shared__ int warps[kScan / 32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int carry = 0;
  for (long long base = 0; base < rows; base += kScan) {
    const long long row = base + threadIdx.x;
    const int own = row < rows ? counts[row] : 0;
    int through = own;
    for (int offset = 1; offset < 32; offset *= 2) {
      const int other = __shfl_up_sync(0xffffffffu, through, offset);
      if (lane >= offset) through += other;
    }
    if (lane == 31) warps[warp] = through;
    __syncthreads();
    int before = carry;
    for (int w = 0; w < kScan / 32; ++w) {
      if (w < warp) before += warps[w];
      carry += warps[w];
    }
    if (row < rows) {
      starts[row] = before + through - own;
      int place = kQueue;
      if (own > kHeavy) place = atomicAdd(queued, 1);
      if (place < kQueue) queue[place] = static_cast<int>(row);
      by_queue[row] = place < kQueue;
    }
    __syncthreads();
  }
}

extern "C" __global__ void __launch_bounds__(256) place(const long long* __restrict__ index, const int* __restrict__ starts, int* placed,
                                                        int* __restrict__ order, long long tokens) {
  const long long t = static_cast<long long>(blockIdx.x) * 256 + threadIdx.x;
  if (t >= tokens) return;
  const long long row = index[t];
  order[starts[row] + atomicAdd(placed + row, 1)] = static_cast<int>(t);
}

extern "C" __global__ void __launch_bounds__(kLight) add_light(const T* __restrict__ src, const int* __restrict__ counts,
                                                               const int* __restrict__ starts, const int* __restrict__ by_queue,
                                                               const int* __restrict__ order, T* __restrict__ out, long long hidden,
                                                               long long rows) {
  for (long long row = blockIdx.x; row < rows; row += gridDim.x) {
    const int held = counts[row];
    if (by_queue[row]) continue;
    const int* tokens = order + starts[row];
    for (long long h = threadIdx.x; h < hidden; h += kLight) {
      float sum = 0.0f;
#pragma unroll 4
      for (int i = 0; i < held; ++i) sum += static_cast<float>(src[tokens[i] * hidden + h]);
      out[row * hidden + h] = T(sum);
    }
  }
}

extern "C" __global__ void __launch_bounds__(kColumns* kLanes)
    add_heavy(const T* __restrict__ src, const int* __restrict__ counts, const int* __restrict__ starts, const int* __restrict__ queue,
              const int* __restrict__ queued, const int* __restrict__ order, T* __restrict__ out, long long hidden) {
  __shared__ float sums[kLanes][kColumns + 1];
  const int column = threadIdx.x % kColumns, lane = threadIdx.x / kColumns;
  const long long strips = (hidden + kColumns - 1) / kColumns;
  const int heavy = min(*queued, kQueue);
  for (long long work = blockIdx.x; work < heavy * strips; work += gridDim.x) {
    const long long row = queue[work / strips], h = work % strips * kColumns + column;
    const int held = counts[row];
    const int* tokens = order + starts[row];
    float sum = 0.0f;
    if (h < hidden) {
#pragma unroll 4
      for (int i = lane; i < held; i += kLanes) sum += static_cast<float>(src[tokens[i] * hidden + h]);
    }
    sums[lane][column] = sum;
    __syncthreads();
    // Turned, so that a warp adds up a column.
    float whole = sums[column][lane];
    for (int offset = 16; offset > 0; offset /= 2) whole += __shfl_xor_sync(0xffffffffu, whole, offset);
    const long long to = work % strips * kColumns + lane;
    if (column == 0 && to < hidden) out[row * hidden + to] = T(whole);
    __syncthreads();
  }
}
