// Node n has children 2n and 2n + 1; leaves are nodes size .. 2 size - 1.
extern "C" __global__ void climb(const float* x, float* sums, int* flags, int size) {
  int node = size + blockIdx.x * 32 + threadIdx.x;
  sums[node] = x[node - size];
  while (node > 1) {
    int parent = node / 2;
    __threadfence();
    if (atomicAdd(&flags[parent], 1) == 0) return;
    __threadfence();
    sums[parent] = sums[2 * parent] + sums[2 * parent + 1];
    node = parent;
  }
}
