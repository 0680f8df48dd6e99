#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

constexpr int kSlices = 8;
constexpr int kThreads = 256;
constexpr unsigned kAll = 0xffffffffu;

// Eight blocks a token, a slice of the vocabulary each; the last one to come joins the slices in order.
extern "C" __global__ void __launch_bounds__(kThreads)
    cross_entropy(const T* __restrict__ logits, const long long* __restrict__ targets, float* parts,
                  int* tickets, float* __restrict__ loss, long long vocab) {
  __shared__ float shared[kThreads / 32];
  const int thread = threadIdx.x;
  const long long token = blockIdx.x / kSlices;
  const int slice = blockIdx.x % kSlices;
  const T* row = logits + token * vocab;
  const int pieces = static_cast<int>(vocab / kSlices / 8);  // of 16 bytes
  const uint4* from = reinterpret_cast<const uint4*>(row + slice * (vocab / kSlices));

  float largest = __int_as_float(0xff800000);  // -infinity
  for (int i = thread; i < pieces; i += kThreads) {
    const uint4 bits = from[i];
    const T* item = reinterpret_cast<const T*>(&bits);
#pragma unroll
    for (int e = 0; e < 8; ++e) largest = fmaxf(largest, static_cast<float>(item[e]));
  }
  for (int offset = 16; offset > 0; offset /= 2)
    largest = fmaxf(largest, __shfl_xor_sync(kAll, largest, offset));
  if (thread % 32 == 0) shared[thread / 32] = largest;
  __syncthreads();
  largest = shared[0];
  for (int i = 1; i < kThreads / 32; ++i) largest = fmaxf(largest, shared[i]);
  __syncthreads();

  float sum = 0.0f;
  for (int i = thread; i < pieces; i += kThreads) {
    const uint4 bits = from[i];
    const T* item = reinterpret_cast<const T*>(&bits);
#pragma unroll
    for (int e = 0; e < 8; ++e) sum += expf(static_cast<float>(item[e]) - largest);
  }
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(kAll, sum, offset);
  if (thread % 32 == 0) shared[thread / 32] = sum;
  __syncthreads();
  if (thread != 0) return;

  sum = 0.0f;
  for (int i = 0; i < kThreads / 32; ++i) sum += shared[i];
  volatile float* mine = parts + token * kSlices * 2;
  mine[slice * 2] = largest;
  mine[slice * 2 + 1] = sum;
  __threadfence();
  if (atomicAdd(&tickets[token], 1) != kSlices - 1) return;
  __threadfence();
  float most = mine[0];
  for (int s = 1; s < kSlices; ++s) most = fmaxf(most, mine[s * 2]);
  float total = 0.0f;
  for (int s = 0; s < kSlices; ++s) total += mine[s * 2 + 1] * expf(mine[s * 2] - most);
  loss[token] = logf(total) + (most - static_cast<float>(row[targets[token]]));
}
