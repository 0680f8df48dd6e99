// AdamW in place: 16-byte loads and stores of all four tensors.
constexpr int kThreads = 256;

struct Step {
  float rate, beta1, beta2, decay, eps, correction1, correction2;
};

__device__ __forceinline__ void update(float& param, float grad, float& m, float& v,
                                       const Step& s) {
  m = s.beta1 * m + (1.0f - s.beta1) * grad;
  v = s.beta2 * v + (1.0f - s.beta2) * grad * grad;
  const float direction = (m / s.correction1) / (sqrtf(v / s.correction2) + s.eps);
  param = param - s.rate * s.decay * param - s.rate * direction;
}

extern "C" __global__ void __launch_bounds__(kThreads)
    adamw(float* __restrict__ param, const float* __restrict__ grad, float* __restrict__ m,
          float* __restrict__ v, float rate, float beta1, float beta2, float decay, float eps,
          float correction1, float correction2, long long n) {
  const Step s = {rate, beta1, beta2, decay, eps, correction1, correction2};
  const long long vectors = n / 4;
  const long long first = static_cast<long long>(blockIdx.x) * kThreads + threadIdx.x;
  const long long stride = static_cast<long long>(gridDim.x) * kThreads;
  for (long long i = first; i < vectors; i += stride) {
    float4 p = reinterpret_cast<float4*>(param)[i];
    const float4 g = reinterpret_cast<const float4*>(grad)[i];
    float4 a = reinterpret_cast<float4*>(m)[i];
    float4 b = reinterpret_cast<float4*>(v)[i];
    update(p.x, g.x, a.x, b.x, s);
    update(p.y, g.y, a.y, b.y, s);
    update(p.z, g.z, a.z, b.z, s);
    update(p.w, g.w, a.w, b.w, s);
    reinterpret_cast<float4*>(param)[i] = p;
    reinterpret_cast<float4*>(m)[i] = a;
    reinterpret_cast<float4*>(v)[i] = b;
  }
  const long long tail = vectors * 4 + first;  // at most three, of the first block
  if (tail < n) update(param[tail], grad[tail], m[tail], v[tail], s);
}
