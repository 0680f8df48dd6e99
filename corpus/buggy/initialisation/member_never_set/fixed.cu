struct P { float sum; float weight; int n; };
extern "C" __global__ void k(const float* x, float* y) {
  __shared__ P p[32];
  int t = threadIdx.x;
  p[t].sum = x[t]; p[t].n = t; p[t].weight = 1.f;
  __syncthreads();
  P q = p[31 - t];
  y[t] = q.sum / q.weight;
}
