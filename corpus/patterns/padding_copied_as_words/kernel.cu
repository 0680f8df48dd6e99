struct alignas(16) P { char tag; float v; short n; };
extern "C" __global__ void k(const float* x, float* y) {
  __shared__ P p[32], q[32];
  int t = threadIdx.x;
  p[t].tag = 1; p[t].v = x[t]; p[t].n = 3;
  __syncthreads();
  reinterpret_cast<int4*>(q)[t] = reinterpret_cast<int4*>(p)[31 - t];
  __syncthreads();
  y[t] = q[t].v * q[t].tag + q[t].n;
}
