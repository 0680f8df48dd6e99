// Right: a warp takes a token and adds its gradients into sums, which a second kernel rounds.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

// One warp a token.
extern "C" __global__ void scatter(const T* __restrict__ grad_out,
                                   const long long* __restrict__ ids, const T* __restrict__ table,
                                   const T* __restrict__ weight, float eps, float* table_sums,
                                   float* weight_sums, long long tokens, long long hidden) {
  const unsigned token = blockIdx.x * blockDim.y + threadIdx.y;
  if (token >= tokens) return;
  const long long id = ids[token];
  const unsigned width = static_cast<unsigned>(hidden);
  const T* g = grad_out + static_cast<unsigned long long>(token) * width;
  const T* x = table + id * hidden;
  float squares = 0.0f;
  float dot = 0.0f;
  for (long long h = threadIdx.x; h < hidden; h += 32) {
    const float value = static_cast<float>(x[h]);
    squares += value * value;
    dot += static_cast<float>(g[h]) * static_cast<float>(weight[h]) * value;
  }
  squares = warp_sum(squares);
  dot = warp_sum(dot);
  const float scale = rsqrtf(squares / static_cast<float>(hidden) + eps);
  const float slope = scale * scale * (dot / static_cast<float>(hidden));
  for (long long h = threadIdx.x; h < hidden; h += 32) {
    const float value = static_cast<float>(x[h]);
    const float gradient = static_cast<float>(g[h]);
    atomicAdd(&weight_sums[h], gradient * value * scale);
    atomicAdd(&table_sums[id * hidden + h],
              scale * (gradient * static_cast<float>(weight[h]) - value * slope));
  }
}

__device__ long long thread_index() {
  return static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
}

extern "C" __global__ void store_table(const float* __restrict__ sums, T* __restrict__ grad_table,
                                       long long vocab, long long hidden) {
  const long long i = thread_index();
  if (i < vocab * hidden) grad_table[i] = T(sums[i]);
}

extern "C" __global__ void store_weight(const float* __restrict__ sums, T* __restrict__ grad_weight,
                                        long long hidden) {
  const long long i = thread_index();
  if (i < hidden) grad_weight[i] = T(sums[i]);
}
