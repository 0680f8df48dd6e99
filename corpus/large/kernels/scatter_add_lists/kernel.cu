// Tokens of a row form a list; a warp a row walks it and adds with compensation. No float atomics.
extern "C" __global__ void empty(int* __restrict__ head, long long rows) {
  const long long r = blockIdx.x * 256ll + threadIdx.x;
  if (r < rows) head[r] = -1;
}
extern "C" __global__ void link(const long long* __restrict__ index, int* head, int* __restrict__ next,
                                long long tokens) {
  const long long t = blockIdx.x * 256ll + threadIdx.x;
  if (t < tokens) next[t] = atomicExch(&head[index[t]], static_cast<int>(t));
}
extern "C" __global__ __launch_bounds__(128) void add(const float* __restrict__ src, const int* __restrict__ head,
                                                      const int* __restrict__ next, float* __restrict__ out,
                                                      long long hidden, long long rows) {
  const long long r = blockIdx.x * 4ll + (threadIdx.x >> 5);
  if (r >= rows) return;
  const int first = head[r];
  for (long long h = threadIdx.x & 31; h < hidden; h += 32) {
    float sum = 0.0f, lost = 0.0f;
    for (int t = first; t >= 0; t = next[t]) {
      const float term = __fsub_rn(src[t * hidden + h], lost);
      const float grown = __fadd_rn(sum, term);
      lost = __fsub_rn(__fsub_rn(grown, sum), term);
      sum = grown;
    }
    out[r * hidden + h] = sum;
  }
}
