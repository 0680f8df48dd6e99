extern "C" __global__ void lengths(int* len) { len[threadIdx.x] = threadIdx.x + 1; }
extern "C" __global__ void rows(const float* x, const int* len, float* y) {
  int n = len[threadIdx.x];
  float s = 0.0f;
  for (int i = 0; i < n && i < 8; ++i) s += x[threadIdx.x * 8 + i];  // BUG: uninitialised_use
  y[threadIdx.x] = s;
}
