struct B { unsigned a : 5; unsigned b : 11; unsigned c : 16; };
extern "C" __global__ void k(const unsigned* x, unsigned* y) {
  __shared__ B s[32];
  int t = threadIdx.x;
  s[t].a = x[t] & 31;
  s[t].b = x[t] & 7;
  s[t].c = x[t];
  __syncwarp();
  B v = s[31 - t];
  y[t] = v.a + v.b + v.c;
}
