// Livelocks, masks and undefined operands, each with what must not be reported.
// Compiled with: nvcc -ptx -arch=sm_90 -lineinfo spins.cu
#define KERNEL extern "C" __global__ void

// Block 0 waits for the last of n blocks; with one block fewer nobody comes.
KERNEL waits_for_block(const int*, int* y, int n) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x == n - 1) atomicExch(&y[0], 1);
  if (blockIdx.x == 0) {
    while (atomicAdd(&y[0], 0) == 0) {
    }
    y[1] = 1;
  }
}
// Looks n times and goes on.
KERNEL gives_up(const int*, int* y, int n) {
  int rounds = 0;
  while (rounds < n && atomicAdd(&y[0], 0) == 0) ++rounds;
  if (threadIdx.x == 0) y[1] = rounds;
}
// A long computation without any memory access.
KERNEL computes(const int*, int* y, int n) {
  unsigned value = threadIdx.x;
  for (int i = 0; i < n; ++i) value = value * 1664525u + 1013904223u;
  y[threadIdx.x] = static_cast<int>(value);
}
// The first n threads wait for a signal that comes after a barrier with them.
KERNEL waits_before_a_barrier(const int*, int* y, int n) {
  volatile int* flag = y;
  if (threadIdx.x < n) {
    while (flag[0] == 0) {
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) flag[0] = 1;
}
KERNEL passes_by(const int* x, int* y, int n) {
  int v = 0;
  if (threadIdx.x < n) v = __shfl_xor_sync(0xffffffffu, x[threadIdx.x], 1);
  y[threadIdx.x] = v;
}
KERNEL returns_early(const int* x, int* y, int n) {
  y[threadIdx.x] = 0;
  if (threadIdx.x >= n) return;
  y[threadIdx.x] = __shfl_xor_sync(0xffffffffu, x[threadIdx.x], 1);
}
// Compares with a neighbour that may be undefined, and with it only where it counts.
KERNEL decided(const int* x, int* y, int n) {
  __shared__ int tile[64];
  tile[threadIdx.x] = x[threadIdx.x];
  __syncwarp();
  int next = tile[threadIdx.x + 1];
  bool less = next < x[0];
  bool counts = threadIdx.x + 1 < n;
  y[threadIdx.x] = (counts & less) ? 1 : 2;
}
KERNEL adds_to_unset(const int* x, int* y, int n) {
  __shared__ int sum;
  if (n == 0 && threadIdx.x == 0) sum = 0;
  __syncthreads();
  atomicAdd(&sum, x[threadIdx.x]);
}
KERNEL exchanges_unset(const int* x, int*, int) {
  __shared__ int slot;
  atomicExch(&slot, x[threadIdx.x]);
}
