#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;


// Four kernels over f32 workspaces: rows of tokens (a warp each), columns of the weight's gradient, and the two stores.
__device__ __forceinline__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset >>= 1) value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

__device__ __forceinline__ const T* table_row(const T* table, long long id, unsigned row_bytes) {
  return reinterpret_cast<const T*>(reinterpret_cast<const char*>(table) + static_cast<size_t>(id) * row_bytes);
}

extern "C" __global__ void token_rows(const T* __restrict__ grad_out, const long long* __restrict__ ids,
                                      const T* __restrict__ table, const T* __restrict__ weight, float eps,
                                      float* __restrict__ scales, float* __restrict__ table_sums, long long tokens,
                                      long long hidden) {
  const long long token = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (token >= tokens) return;
  const long long id = ids[token];
  const T* g = grad_out + token * hidden;
  const T* x = table_row(table, id, static_cast<unsigned>(hidden * sizeof(T)));
  float* sums = table_sums + id * hidden;
  float squares = 0.0f, dot = 0.0f;
  for (long long h = threadIdx.x; h < hidden; h += 32) {
    const float value = static_cast<float>(x[h]);
    squares = fmaf(value, value, squares);
    dot = fmaf(static_cast<float>(g[h]) * static_cast<float>(weight[h]), value, dot);
  }
  squares = warp_sum(squares);
  dot = warp_sum(dot);
  const float scale = rsqrtf(squares / static_cast<float>(hidden) + eps);
  const float slope = scale * scale * (dot / static_cast<float>(hidden));
  if (threadIdx.x == 0) scales[token] = scale;
  for (long long h = threadIdx.x; h < hidden; h += 32)
    atomicAdd(&sums[h], scale * (static_cast<float>(g[h]) * static_cast<float>(weight[h]) - static_cast<float>(x[h]) * slope));
}

// Blocks of 32 columns and 8 tokens at a time; one atomic a column and block.
extern "C" __global__ void weight_columns(const T* __restrict__ grad_out, const long long* __restrict__ ids,
                                          const T* __restrict__ table, const float* __restrict__ scales,
                                          float* __restrict__ weight_sums, long long tokens, long long hidden) {
  __shared__ float shared[8][33];
  const long long h = static_cast<long long>(blockIdx.x) * 32 + threadIdx.x;
  float sum = 0.0f;
  if (h < hidden) {
    for (long long t = static_cast<long long>(blockIdx.y) * 8 + threadIdx.y; t < tokens; t += gridDim.y * 8ll) {
      const T* x = table_row(table, ids[t], static_cast<unsigned>(hidden * sizeof(T)));
      sum += static_cast<float>(grad_out[t * hidden + h]) * static_cast<float>(x[h]) * scales[t];
    }
  }
  shared[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y == 0 && h < hidden) {
    for (int r = 1; r < 8; ++r) sum += shared[r][threadIdx.x];
    atomicAdd(&weight_sums[h], sum);
  }
}

extern "C" __global__ void store(const float* __restrict__ sums, T* __restrict__ out, long long count) {
  for (long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x; i < count; i += gridDim.x * static_cast<long long>(blockDim.x))
    out[i] = T(sums[i]);
}

extern "C" __global__ void store_table(const float* __restrict__ sums, T* __restrict__ out, long long vocab, long long hidden) {
  const long long count = vocab * hidden;
  for (long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x; i < count; i += gridDim.x * static_cast<long long>(blockDim.x))
    out[i] = T(sums[i]);
}
