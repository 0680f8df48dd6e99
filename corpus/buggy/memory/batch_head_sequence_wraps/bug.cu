extern "C" __global__ void gather(const float* q, float* out, int heads, int length, int dim, long long limit) {
  int b = blockIdx.x, h = blockIdx.y, d = threadIdx.x;
  int at = ((b * heads + h) * length + 7) * dim + d;
  if (at >= limit) return;
  float v = q[at];  // BUG: index_overflow
  out[d] = v;
}
