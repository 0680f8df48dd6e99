extern "C" __global__ void prefix(const int* x, volatile int* value, volatile int* status, int* y) {
  int b = blockIdx.x, t = threadIdx.x;
  int v = x[b * 32 + t];
  for (int o = 1; o < 32; o *= 2) {
    int u = __shfl_up_sync(0xffffffffu, v, o);
    if (t >= o) v += u;
  }
  int before = 0;
  if (t == 31) {
    if (b > 0) {
      while (status[b - 1] == 0) {
      }
      __threadfence();
      before = value[b - 1];
    }
    value[b] = before + v;
    __threadfence();
    status[b] = 1;
  }
  before = __shfl_sync(0xffffffffu, before, 31);
  y[b * 32 + t] = before + v;
}
