#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

template <int N>
__device__ float block_sum(float v) {
  __shared__ float warps[N / 32];
  for (int o = 16; o > 0; o /= 2) v += __shfl_xor_sync(0xffffffffu, v, o);
  if ((threadIdx.x & 31) == 0) warps[threadIdx.x / 32] = v;
  __syncthreads();
  float s = 0.0f;
  for (int i = 0; i < N / 32; ++i) s += warps[i];
  __syncthreads();
  return s;
}

extern "C" __global__ void row_sum(const T* __restrict__ x, T* __restrict__ y, float* partial,
                                   unsigned* count, long long rows, long long columns) {
  const long long row = blockIdx.x;
  const int part = blockIdx.y;
  const long long end = columns * (part + 1) / 3;
  float s = 0.0f;
  for (long long j = columns * part / 3 + threadIdx.x; j < end; j += 128)
    s += __half2float(x[row * columns + j]);
  s = block_sum<128>(s);
  if (threadIdx.x != 0) return;
  unsigned order;
  asm volatile(
      "{\n\t"
      ".reg .u32 one;\n\t"
      "mov.u32 one, 1;\n\t"
      "st.relaxed.gpu.global.f32 [%1], %3;\n\t"
      "fence.acq_rel.cta;\n\t"
      "atom.relaxed.gpu.global.add.u32 %0, [%2], one;\n\t"
      "fence.acq_rel.gpu;\n\t"
      "}"
      : "=r"(order)
      : "l"(partial + row * 3 + part), "l"(count + row), "f"(s)
      : "memory");
  if (order != 2) return;
  float total = 0.0f;
  for (int i = 0; i < 3; ++i) {
    float v;
    asm volatile("ld.relaxed.gpu.global.f32 %0, [%1];" : "=f"(v) : "l"(partial + row * 3 + i) : "memory");
    total += v;
  }
  y[row] = __float2half(total);
}
