// Four parameters a thread and round, blocks that stay: 1056 of 256 threads.
#include <cuda_fp16.h>

struct Step {
  float rate, beta1, beta2, decay, eps, correction1, correction2;
};

__device__ __forceinline__ float update(const Step& step, float param, float grad, float& m, float& v) {
  m = step.beta1 * m + (1.0f - step.beta1) * grad;
  v = step.beta2 * v + (1.0f - step.beta2) * grad * grad;
  return param - step.rate * step.decay * param -
         step.rate * (m / step.correction1) / (sqrtf(v / step.correction2) + step.eps);
}

extern "C" __global__ void __launch_bounds__(256)
adamw(__half* __restrict__ param, const __half* __restrict__ grad, float* __restrict__ m, float* __restrict__ v,
      float rate, float beta1, float beta2, float decay, float eps, float correction1, float correction2,
      long long n) {
  const Step step{rate, beta1, beta2, decay, eps, correction1, correction2};
  const unsigned thread = blockIdx.x * 256u + threadIdx.x;
  const unsigned threads = gridDim.x * 256u;
  // Groups of four: at most 2^30, so that 32 bits number them.
  const long long groups = n / 4;
  for (unsigned group = thread; group < groups; group += threads) {
    const uint2 packed_param = reinterpret_cast<const uint2*>(param)[group];
    const uint2 packed_grad = reinterpret_cast<const uint2*>(grad)[group];
    float4 first = reinterpret_cast<const float4*>(m)[group];
    float4 second = reinterpret_cast<const float4*>(v)[group];
    const float2 p01 = __half22float2(reinterpret_cast<const __half2*>(&packed_param)[0]);
    const float2 p23 = __half22float2(reinterpret_cast<const __half2*>(&packed_param)[1]);
    const float2 g01 = __half22float2(reinterpret_cast<const __half2*>(&packed_grad)[0]);
    const float2 g23 = __half22float2(reinterpret_cast<const __half2*>(&packed_grad)[1]);
    const float p0 = update(step, p01.x, g01.x, first.x, second.x);
    const float p1 = update(step, p01.y, g01.y, first.y, second.y);
    const float p2 = update(step, p23.x, g23.x, first.z, second.z);
    const float p3 = update(step, p23.y, g23.y, first.w, second.w);
    uint2 result;
    reinterpret_cast<__half2*>(&result)[0] = __floats2half2_rn(p0, p1);
    reinterpret_cast<__half2*>(&result)[1] = __floats2half2_rn(p2, p3);
    reinterpret_cast<uint2*>(param)[group] = result;
    reinterpret_cast<float4*>(m)[group] = first;
    reinterpret_cast<float4*>(v)[group] = second;
  }
  // What is left of the last four.
  if (thread < n % 4) {
    const long long i = n - n % 4 + thread;
    float first = m[i], second = v[i];
    param[i] = __float2half_rn(update(step, __half2float(param[i]), __half2float(grad[i]), first, second));
    m[i] = first;
    v[i] = second;
  }
}
