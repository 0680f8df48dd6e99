// A step of AdamW in place, by blocks that count themselves and meet at the end.
#include <cuda_bf16.h>
#include <cooperative_groups.h>

extern "C" __global__ void __launch_bounds__(256)
    adamw(__nv_bfloat16* param, const __nv_bfloat16* grad, float* m, float* v, float rate, float beta1, float beta2, float decay, float eps,
          float correction1, float correction2, unsigned* arrived, long long n) {
  const int count = static_cast<int>(n);
  for (int i = blockIdx.x * 256 + threadIdx.x; i < count; i += gridDim.x * 256) {
    const float p = __bfloat162float(param[i]), g = __bfloat162float(grad[i]);
    const float m0 = beta1 * m[i] + (1.0f - beta1) * g;
    const float v0 = beta2 * v[i] + (1.0f - beta2) * (g * g);
    m[i] = m0;
    v[i] = v0;
    param[i] = __float2bfloat16(p - rate * decay * p - rate * (m0 / correction1) / (sqrtf(v0 / correction2) + eps));
  }
  if (threadIdx.x == 0) atomicAdd(arrived, 1u);
  cooperative_groups::this_grid().sync();
}
