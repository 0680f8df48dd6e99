extern "C" __global__ void softmax(const float* x, float* y) {
  __shared__ float tile[64];
  __shared__ float slot[2];
  int i = blockIdx.x * 64 + threadIdx.x;
  tile[threadIdx.x] = x[i];
  __syncthreads();
  if (threadIdx.x == 0) {
    float m = tile[0];
    for (int k = 1; k < 64; ++k) m = fmaxf(m, tile[k]);
    slot[0] = m;
  }
  __syncthreads();
  float e = __expf(x[i] - slot[0]);
  if (threadIdx.x == 0) {
    float s = 0.0f;
    for (int k = 0; k < 64; ++k) s += __expf(tile[k] - slot[0]);
    slot[1] = s;
  }
  __syncthreads();
  y[i] = e / slot[1];
}
