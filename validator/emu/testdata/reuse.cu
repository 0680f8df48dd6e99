// Kernels that keep an address from one launch to the next. Compiled with: nvcc -ptx -arch=sm_90 -lineinfo reuse.cu
#define KERNEL extern "C" __global__ void

using u32 = unsigned int;
using u64 = unsigned long long;

__device__ const float* seen;
__device__ float kept;

// The sum of x, but what was computed before where the address is the same. One thread.
KERNEL memoised(const float* x, float* y, int n) {
  float sum = 0;
  if (seen == x) {
    sum = kept;
  } else {
    for (int i = 0; i < n; ++i) sum += x[i];
  }
  seen = x;
  kept = sum;
  y[0] = sum;
}

// The sum of what now lies where x lay in the launch before.
KERNEL kept_address(const float* x, float* y, int n) {
  float sum = 0;
  for (int i = 0; i < n && seen != nullptr; ++i) sum += seen[i];
  seen = x;
  y[0] = sum;
}

KERNEL copy(const float* x, float* y, int n) {
  if (threadIdx.x < n) y[threadIdx.x] = x[threadIdx.x];
}

// All lanes write one element.
KERNEL collide(const float* x, float* y, int n) { y[n] = threadIdx.x; }

KERNEL add_third(const float* x, float* y, int n) {
  if (threadIdx.x < n) y[threadIdx.x] = x[threadIdx.x] + 1.0f / 3;
}

// Where x lies: the high part of its address, the low part, and whether y lies behind it.
KERNEL where(const float* x, float* y, int n) {
  const u64 address = reinterpret_cast<u64>(x);
  y[0] = static_cast<float>(address >> 40);
  y[1] = static_cast<float>((address & 0xffffffffull) >> 9);
  y[2] = static_cast<float>(address & 511);
  y[3] = reinterpret_cast<u64>(y) > address;
}

// A float to every eight mebibytes of y, so that a large buffer is touched in a few of its pages.
KERNEL sparse(const float* x, float* y, int n) { y[threadIdx.x * 2097152ull] = x[threadIdx.x]; }

struct alignas(64) TensorMap {
  unsigned char bytes[128];
};

// Thirty-two floats of a one-dimensional tensor map.
KERNEL tile(const __grid_constant__ TensorMap map, float* y) {
  __shared__ alignas(128) float s[32];
  __shared__ u64 barrier;
  const u32 at = static_cast<u32>(__cvta_generic_to_shared(&barrier));
  const u32 to = static_cast<u32>(__cvta_generic_to_shared(s));
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(at) : "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("fence.proxy.async;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 128;" ::"r"(at) : "memory");
    asm volatile(
        "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2}], [%3];" ::"r"(to),
        "l"(&map), "r"(0), "r"(at)
        : "memory");
  }
  asm volatile(
      "{ .reg .pred p;\n W: mbarrier.try_wait.parity.shared.b64 p, [%0], 0;\n @!p bra W;\n }" ::"r"(at)
      : "memory");
  y[threadIdx.x] = s[threadIdx.x];
}
