// AdamW in place. Persistent blocks take chunks of 2,048 parameters: the first by block index, further ones by tickets from an
// atomic counter, so that blocks that got going late take fewer. Eight parameters a thread, 16-byte accesses.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

constexpr int kThreads = 256;
constexpr int kVector = 8;
constexpr int kChunk = kThreads * kVector;

template <class E>
struct alignas(16) Pack {
  E v[kVector];
};

struct Step {
  float rate, beta1, beta2, decay, eps, correction1, correction2;

  __device__ __forceinline__ void operator()(T& param, T grad, float& m, float& v) const {
    const float g = static_cast<float>(grad);
    const float p = static_cast<float>(param);
    m = beta1 * m + (1.0f - beta1) * g;
    v = beta2 * v + (1.0f - beta2) * g * g;
    param = T(p - rate * decay * p - rate * (m / correction1) / (sqrtf(v / correction2) + eps));
  }
};

extern "C" __global__ void __launch_bounds__(kThreads)
adamw(T* __restrict__ param, const T* __restrict__ grad, float* __restrict__ m, float* __restrict__ v, unsigned* tickets,
      float rate, float beta1, float beta2, float decay, float eps, float correction1, float correction2, long long n) {
  __shared__ unsigned taken;
  const Step step{rate, beta1, beta2, decay, eps, correction1, correction2};
  const long long chunks = (n + kChunk - 1) / kChunk;
  long long chunk = blockIdx.x;
  while (chunk < chunks) {
    const long long base = chunk * kChunk;
    if (base + kChunk <= n) {
      const long long i = base + threadIdx.x * kVector;
      Pack<T> p = *reinterpret_cast<const Pack<T>*>(param + i);
      const Pack<T> g = *reinterpret_cast<const Pack<T>*>(grad + i);
      Pack<float> first = *reinterpret_cast<const Pack<float>*>(m + i);
      Pack<float> second = *reinterpret_cast<const Pack<float>*>(v + i);
#pragma unroll
      for (int k = 0; k < kVector; ++k) step(p.v[k], g.v[k], first.v[k], second.v[k]);
      *reinterpret_cast<Pack<T>*>(param + i) = p;
      *reinterpret_cast<Pack<float>*>(m + i) = first;
      *reinterpret_cast<Pack<float>*>(v + i) = second;
    } else {
      for (long long i = base + threadIdx.x; i < n; i += kThreads) {
        T p = param[i];
        float first = m[i], second = v[i];
        step(p, grad[i], first, second);
        param[i] = p;
        m[i] = first;
        v[i] = second;
      }
    }
    __syncthreads();  // all have read the last ticket
    if (threadIdx.x == 0) taken = atomicAdd(tickets, 1u);
    __syncthreads();
    chunk = static_cast<long long>(gridDim.x) + taken;
  }
}
