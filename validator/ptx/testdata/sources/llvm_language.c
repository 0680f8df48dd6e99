// For clang --target=nvptx64-nvidia-cuda: C as LLVM's own back end writes it.
typedef struct {
  int a[6];
  double d;
} S;
typedef _Float16 h;
__attribute__((noinline)) S f(S s, int i) {
  s.a[i] = 3;
  return s;
}
int rec(int n) { return n < 2 ? n : rec(n - 1) + rec(n - 2); }
typedef int (*fp)(int);
static int inc(int x) { return x + 1; }
fp tab[3] = {inc, rec, 0};
int gv[4] = {1, 2};
const char* str = "hey";
double dd = 3.5;
float fl[2] = {1.5f, __builtin_nanf("")};
struct {
  char c;
  int* p;
} st = {1, &gv[2]};
__attribute__((nvptx_kernel)) void k(int* o, float* x, int n, S s, h* hp, __fp16* q) {
  S r = f(s, n);
  o[0] = r.a[n];
  o[1] = tab[n & 1](n);
  int loc[10];
  for (int i = 0; i < 10; i++) loc[i] = o[i];
  o[2] = loc[n];
  x[1] = __builtin_sqrtf(x[0]) + dd;
  switch (n) {
    case 0:
      o[3] = 1;
      break;
    case 1:
      o[4] = 3;
      break;
    case 2:
      o[5] = 5;
      break;
    case 3:
      o[6] = 7;
      break;
    case 4:
      o[7] = n * 3;
      break;
    case 9:
      o[1] = 3;
  }
  o[9] = __nvvm_read_ptx_sreg_tid_x();
  __syncthreads();
  hp[0] = hp[1] * hp[2] + hp[3];
  x[4] = __nvvm_shfl_sync_bfly_f32(-1, x[5], 1, 31);
  unsigned long long a = __builtin_popcountll(o[3]) + __builtin_clz(n);
  o[10] = a;
  __atomic_fetch_add(o, 3, __ATOMIC_SEQ_CST);
  int e = 4;
  __atomic_compare_exchange_n(o + 1, &e, 5, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
  o[11] = __atomic_load_n(o + 12, __ATOMIC_RELAXED);
  __atomic_store_n(o + 13, 7, __ATOMIC_RELAXED);
  o[14] = o[15] / n + o[16] % n;
  __builtin_trap();
}
