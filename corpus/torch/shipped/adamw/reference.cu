// adamw: One step of AdamW, in place.
//
// Lowered from PyTorch; the comments quote the lines that it came from.
#include "assay/reference.cuh"

using T = ASSAY_T;

__global__ void param_out_kernel(const T* param, const T* grad, const float* m, const float* v,
                                 float rate, float beta1, float beta2, float decay, float eps,
                                 float correction1, float correction2, Out<T>* param_out, int64 n) {
  const int64 i = thread_index();
  if (i >= n) return;
  // 170: param.copy_((wide - rate * decay * wide - step).to(param.dtype))
  const Real mul_6 = Real(rate) * Real(decay);
  const Real mul_7 = mul_6 * Real(param[i]);
  const Real sub_2 = Real(param[i]) - mul_7;
  // 166: m.copy_(beta1 * m + (1 - beta1) * g)
  const Real mul = Real(beta1) * Real(m[i]);
  const Real sub = Real(1) - Real(beta1);
  const Real mul_1 = sub * Real(grad[i]);
  const Real add = mul + mul_1;
  // 168: step = rate * (m / correction1) / (torch.sqrt(v / correction2) + eps)
  const Real div = add / Real(correction1);
  const Real mul_5 = Real(rate) * div;
  // 167: v.copy_(beta2 * v + (1 - beta2) * (g * g))
  const Real mul_2 = Real(beta2) * Real(v[i]);
  const Real sub_1 = Real(1) - Real(beta2);
  const Real mul_3 = Real(grad[i]) * Real(grad[i]);
  const Real mul_4 = sub_1 * mul_3;
  const Real add_1 = mul_2 + mul_4;
  // 168: step = rate * (m / correction1) / (torch.sqrt(v / correction2) + eps)
  const Real div_1 = add_1 / Real(correction2);
  const Real sqrt_value = sqrt(div_1);
  const Real add_2 = sqrt_value + Real(eps);
  const Real div_2 = mul_5 / add_2;
  // 170: param.copy_((wide - rate * decay * wide - step).to(param.dtype))
  const Real sub_3 = sub_2 - div_2;
  param_out[i] = sub_3;
}

__global__ void m_out_kernel(const T* grad, const float* m, float beta1, Out<float>* m_out,
                             int64 n) {
  const int64 i = thread_index();
  if (i >= n) return;
  // 166: m.copy_(beta1 * m + (1 - beta1) * g)
  const Real mul = Real(beta1) * Real(m[i]);
  const Real sub = Real(1) - Real(beta1);
  const Real mul_1 = sub * Real(grad[i]);
  const Real add = mul + mul_1;
  m_out[i] = add;
}

__global__ void v_out_kernel(const T* grad, const float* v, float beta2, Out<float>* v_out,
                             int64 n) {
  const int64 i = thread_index();
  if (i >= n) return;
  // 167: v.copy_(beta2 * v + (1 - beta2) * (g * g))
  const Real mul_2 = Real(beta2) * Real(v[i]);
  const Real sub_1 = Real(1) - Real(beta2);
  const Real mul_3 = Real(grad[i]) * Real(grad[i]);
  const Real mul_4 = sub_1 * mul_3;
  const Real add_1 = mul_2 + mul_4;
  v_out[i] = add_1;
}
