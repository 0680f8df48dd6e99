// alloca: blocks of local memory as long as the launch says, handed to functions, overrun, and read before they are written.
__device__ __noinline__ float sum(const float* p, int n) {
  float s = 0;
  for (int i = 0; i < n; ++i) s += p[i];
  return s;
}

__device__ __noinline__ float twice(float v, int n) {
  float* own = static_cast<float*>(alloca(n * sizeof(float)));
  for (int i = 0; i < n; ++i) own[i] = v;
  return sum(own, n);
}

extern "C" __global__ void sums(float* x, int n) {
  const int mine = n + threadIdx.x % 3;
  float* first = static_cast<float*>(alloca(mine * sizeof(float)));
  float* second = static_cast<float*>(alloca(4 * sizeof(float)));
  for (int i = 0; i < mine; ++i) first[i] = i;
  for (int i = 0; i < 4; ++i) second[i] = 100;
  x[threadIdx.x] = sum(first, mine) + twice(0.5f, n) + sum(second, 4) + twice(0.25f, n);
}

extern "C" __global__ void overruns(float* x, int n) {
  float* first = static_cast<float*>(alloca(n * sizeof(float)));
  for (int i = 0; i <= n; ++i) first[i] = i;
  x[threadIdx.x] = sum(first, n);
}

extern "C" __global__ void forgets(float* x, int n) {
  float* first = static_cast<float*>(alloca(n * sizeof(float)));
  for (int i = 1; i < n; ++i) first[i] = i;
  x[threadIdx.x] = sum(first, n);
}

extern "C" __global__ void overflows(float* x, int n) {
  float* first = static_cast<float*>(alloca(static_cast<size_t>(n) << 20));
  first[0] = 1;
  x[threadIdx.x] = sum(first, 1);
}
