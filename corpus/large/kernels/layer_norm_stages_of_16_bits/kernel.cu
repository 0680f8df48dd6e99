// Layer normalisation, f32.
//
// Up to 1,024 elements a row: a warp a row, in registers. Longer rows: persistent blocks that walk over the rows with
// three stages of shared memory, filled by cp.async two rows ahead. Mean first, then the variance of the deviations.
#include <cuda_pipeline.h>

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kStages = 3;

__device__ __forceinline__ float warp_sum(float v) {
  for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
  return v;
}

__device__ __forceinline__ float block_sum(float v, float* scratch) {
  v = warp_sum(v);
  if ((threadIdx.x & 31) == 0) scratch[threadIdx.x >> 5] = v;
  __syncthreads();
  float sum = 0.0f;
#pragma unroll
  for (int w = 0; w < kWarps; ++w) sum += scratch[w];
  __syncthreads();
  return sum;
}

extern "C" __global__ void __launch_bounds__(kThreads)
layer_norm_short(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias, float eps,
                 float* __restrict__ y, long long tokens, int hidden) {
  const int lane = threadIdx.x & 31;
  const long long row = static_cast<long long>(blockIdx.x) * kWarps + (threadIdx.x >> 5);
  if (row >= tokens) return;
  const float* src = x + row * hidden;
  float* dst = y + row * hidden;
  float v[32];
  float sum = 0.0f;
#pragma unroll
  for (int k = 0; k < 32; ++k) {
    const int h = lane + 32 * k;
    v[k] = h < hidden ? src[h] : 0.0f;
    sum += v[k];
  }
  const float mean = warp_sum(sum) / static_cast<float>(hidden);
  float squares = 0.0f;
#pragma unroll
  for (int k = 0; k < 32; ++k) {
    const float d = lane + 32 * k < hidden ? v[k] - mean : 0.0f;
    squares += d * d;
  }
  const float rstd = rsqrtf(warp_sum(squares) / static_cast<float>(hidden) + eps);
#pragma unroll
  for (int k = 0; k < 32; ++k) {
    const int h = lane + 32 * k;
    if (h < hidden) dst[h] = (v[k] - mean) * rstd * weight[h] + bias[h];
  }
}

// Copies of one row into a stage; the caller commits.
__device__ __forceinline__ void fetch(float* stage, const float* src, int hidden) {
  if (hidden % 4 == 0) {
    for (int i = threadIdx.x * 4; i < hidden; i += kThreads * 4) __pipeline_memcpy_async(stage + i, src + i, 16);
  } else {
    for (int i = threadIdx.x; i < hidden; i += kThreads) __pipeline_memcpy_async(stage + i, src + i, 4);
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
layer_norm_pipelined(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
                     float eps, float* __restrict__ y, long long tokens, int hidden) {
  extern __shared__ __align__(128) unsigned char smem[];
  __shared__ float scratch[kWarps];
  const unsigned short stage_bytes = static_cast<unsigned short>((hidden + 3) / 4 * 16);
  const auto stage_at = [&](int s) { return reinterpret_cast<float*>(smem + s * stage_bytes); };

  for (int s = 0; s < kStages - 1; ++s) {
    const long long row = blockIdx.x + static_cast<long long>(s) * gridDim.x;
    if (row < tokens) fetch(stage_at(s), x + row * hidden, hidden);
    __pipeline_commit();
  }
  int stage = 0;
  for (long long row = blockIdx.x; row < tokens; row += gridDim.x) {
    const long long ahead = row + static_cast<long long>(kStages - 1) * gridDim.x;
    const int free_stage = stage == 0 ? kStages - 1 : stage - 1;
    if (ahead < tokens) fetch(stage_at(free_stage), x + ahead * hidden, hidden);
    __pipeline_commit();
    __pipeline_wait_prior(kStages - 1);
    __syncthreads();

    const float* data = stage_at(stage);
    float sum = 0.0f;
    for (int h = threadIdx.x; h < hidden; h += kThreads) sum += data[h];
    const float mean = block_sum(sum, scratch) / static_cast<float>(hidden);
    float squares = 0.0f;
    for (int h = threadIdx.x; h < hidden; h += kThreads) {
      const float d = data[h] - mean;
      squares += d * d;
    }
    const float rstd = rsqrtf(block_sum(squares, scratch) / static_cast<float>(hidden) + eps);
    float* dst = y + row * hidden;
    for (int h = threadIdx.x; h < hidden; h += kThreads)
      dst[h] = (data[h] - mean) * rstd * weight[h] + bias[h];
    __syncthreads();  // the next turn fills this stage's predecessor, the turn after it this one
    stage = stage == kStages - 1 ? 0 : stage + 1;
  }
}
