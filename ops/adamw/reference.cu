// m'     = beta1 m + (1 - beta1) grad
// v'     = beta2 v + (1 - beta2) grad^2
// param' = param - rate decay param - rate (m' / correction1) / (sqrt(v' / correction2) + eps)
#include "assay/reference.cuh"

using T = ASSAY_T;

// One thread a parameter.
__global__ void adamw(const T* param, const T* grad, const float* m, const float* v, float rate,
                      float beta1, float beta2, float decay, float eps, float correction1,
                      float correction2, Out<T>* param_out, Out<float>* m_out, Out<float>* v_out,
                      int64 n) {
  const int64 i = thread_index();
  if (i >= n) return;
  const Real g = grad[i];
  const Real first = Real(beta1) * Real(m[i]) + (Real(1) - Real(beta1)) * g;
  const Real second = Real(beta2) * Real(v[i]) + (Real(1) - Real(beta2)) * (g * g);
  m_out[i] = first;
  v_out[i] = second;
  const Real step =
      Real(rate) * (first / Real(correction1)) / (sqrt(second / Real(correction2)) + Real(eps));
  param_out[i] = Real(param[i]) - Real(rate) * Real(decay) * Real(param[i]) - step;
}
