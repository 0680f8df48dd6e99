// Threads that wait by looking at memory, in ways that can be told to be waiting and in ways that cannot.
// Compiled with: nvcc -ptx -arch=sm_90 -lineinfo polls.cu
#define KERNEL extern "C" __global__ void

// One ticket after the other; y[0] and y[1] are the lock, y[2] counts. The holder is slow.
KERNEL tickets(const int* x, int* y, int n) {
  if (threadIdx.x != 0) return;
  volatile int* serving = y + 1;
  const int mine = atomicAdd(&y[0], 1);
  while (*serving != mine) {
  }
  __threadfence();
  int sum = 0;
  for (int i = 0; i < n; ++i) sum += x[i % 32];
  y[2] += sum;
  __threadfence();
  *serving = mine + 1;
}
// A lock taken by exchange: looking writes what is there.
KERNEL exchanges(const int* x, int* y, int n) {
  if (threadIdx.x != 0) return;
  while (atomicExch(&y[0], 1) != 0) {
  }
  __threadfence();
  int sum = 0;
  for (int i = 0; i < n; ++i) sum += x[i % 32];
  y[2] += sum;
  __threadfence();
  atomicExch(&y[0], 0);
}
// The last block waits for either of two words; the first one writes the second of them.
KERNEL either(const int*, int* y, int n) {
  volatile int* flags = y;
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) {
    int sum = 0;
    for (int i = 0; i < n; ++i) sum += flags[8 + i % 8];
    flags[1] = 1 + sum;
  } else if (blockIdx.x == gridDim.x - 1) {
    while (flags[0] == 0 && flags[1] == 0) {
    }
    y[2] = flags[1];
  }
}
// One warp waits in shared memory for another, whose other lanes meet it at a barrier first.
KERNEL within_a_block(const int* x, int* y, int n) {
  __shared__ volatile int flag;
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  if (threadIdx.x >= 32) {
    int sum = 0;
    for (int i = 0; i < n; ++i) sum += x[(i + threadIdx.x) % 32];
    if (threadIdx.x == 32) flag = sum;
  } else if (threadIdx.x == 0) {
    while (flag == 0) {
    }
    y[blockIdx.x] = flag;
  }
}
// Waits, and counts how often it had to look: each look is another state.
KERNEL counts_looks(const int*, int* y, int n) {
  volatile int* flag = y;
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) {
    int sum = 0;
    for (int i = 0; i < n; ++i) sum += flag[8 + i % 8];
    flag[0] = 1 + sum;
  } else {
    int looks = 1;
    while (flag[0] == 0) ++looks;
    y[blockIdx.x] = looks;
  }
}
// The word goes back to what it was: whoever waits for a change may miss it, but not the last one.
KERNEL back_and_forth(const int*, int* y, int n) {
  volatile int* flag = y;
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) {
    for (int i = 0; i < n; ++i) flag[0] = i & 1;
    flag[0] = 2;
  } else {
    while (flag[0] != 2) {
    }
    y[blockIdx.x] = 1;
  }
}
// One thread waits for its block, and compares what it sees with a word of the block: the others of its
// warp stand behind the loop meanwhile.
KERNEL for_its_block(const int* x, int* y, int n) {
  __shared__ volatile int mine;
  volatile int* serving = y + 1;
  if (threadIdx.x == 0) {
    mine = atomicAdd(&y[0], 1);
    while (*serving != mine) {
    }
    __threadfence();
  }
  __syncthreads();
  int sum = 0;
  for (int i = 0; i < n; ++i) sum += x[i % 32];
  if (threadIdx.x == 0) y[2] += sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    *serving = mine + 1;
  }
}
