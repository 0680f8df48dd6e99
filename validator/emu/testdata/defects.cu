// One defect a kernel, each with a twin `_ok` that does the same right. Compiled with: nvcc -ptx -arch=sm_90 -lineinfo defects.cu
#include <cuda_pipeline.h>

#define KERNEL extern "C" __global__ void

KERNEL past_the_end(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n) y[0] = x[i];
}
KERNEL past_the_end_ok(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && i == 0) y[0] = x[i];
}
KERNEL before_the_start(const float* x, float* y, int n) { y[threadIdx.x] = x[(int)threadIdx.x - 1]; }
KERNEL null_pointer(const float* x, float* y, int n) {
  const float* p = reinterpret_cast<const float*>((long long)n - 32);
  y[threadIdx.x] = p[threadIdx.x];
}
KERNEL misaligned(const float* x, float* y, int n) {
  float4 v = *reinterpret_cast<const float4*>(x + 1);
  y[threadIdx.x] = v.x + v.y + v.z + v.w;
}
KERNEL misaligned_ok(const float* x, float* y, int n) {
  float4 v = *reinterpret_cast<const float4*>(x + 4);
  y[threadIdx.x] = v.x + v.y + v.z + v.w;
}
KERNEL writes_input(float* x, float* y, int n) {
  x[threadIdx.x] = 0;
  y[threadIdx.x] = 1;
}
KERNEL shared_overrun(const float* x, float* y, int n) {
  __shared__ float a[32];
  __shared__ float b[32];
  b[threadIdx.x] = 0;
  __syncthreads();
  a[threadIdx.x + n] = 1;
  __syncthreads();
  y[threadIdx.x] = b[threadIdx.x] + a[31 - threadIdx.x];
}
KERNEL dynamic_overrun(const float* x, float* y, int n) {
  extern __shared__ float d[];
  d[threadIdx.x + n] = 1;
  __syncthreads();
  y[threadIdx.x] = d[n + 31 - threadIdx.x];
}
KERNEL use_after_free(const float* x, float* y, int n) {
  float* m = (float*)malloc(4);
  m[0] = 1;
  free(m);
  y[threadIdx.x] = m[n];
}
KERNEL double_free(const float* x, float* y, int n) {
  float* m = (float*)malloc(4);
  free(m);
  if (n == 0) free(m);
}
KERNEL index_overflow(const float* x, float* y, int n) {
  int row = blockIdx.x + n;
  int stride = n;
  y[threadIdx.x] = x[row * stride + threadIdx.x];
}
KERNEL local_overrun(const float* x, float* y, int n) {
  int a[8];
  for (int i = 0; i < 8; ++i) a[i] = i + n;
  int sum = 0;
  for (int i = 0; i < n; ++i) sum += a[(i * 7 + threadIdx.x) % n];
  y[threadIdx.x] = sum;
}

KERNEL uninitialised_shared(const float* x, float* y, int n) {
  __shared__ float s[64];
  if (threadIdx.x < 16) s[threadIdx.x] = 1;
  __syncthreads();
  y[threadIdx.x] = s[threadIdx.x];
}
KERNEL uninitialised_shared_ok(const float* x, float* y, int n) {
  __shared__ float s[64];
  if (threadIdx.x < 16) s[threadIdx.x] = 1;
  __syncthreads();
  float v = s[threadIdx.x];
  y[threadIdx.x] = threadIdx.x < 16 ? v : 0.0f;
}
KERNEL uninitialised_branch(const float* w, float* y, int n) {
  if (w[threadIdx.x] > 0) y[threadIdx.x] = 1;
  else y[threadIdx.x] = 2;
}
KERNEL uninitialised_address(const int* w, float* y, int n) { y[w[threadIdx.x]] = 1; }
KERNEL unwritten(const float* x, float* y, int n) {
  if (threadIdx.x + 1 < n) y[threadIdx.x] = 1;
}

KERNEL missing_barrier(const float* x, float* y, int n) {
  __shared__ float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  y[threadIdx.x] = s[63 - threadIdx.x];
}
KERNEL missing_barrier_ok(const float* x, float* y, int n) {
  __shared__ float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = s[63 - threadIdx.x];
}
KERNEL missing_second_barrier(const float* x, float* y, int n) {
  __shared__ float s[64];
  for (int r = 0; r < n; ++r) {
    s[threadIdx.x] = x[threadIdx.x] + r;
    __syncthreads();
    y[r * 64 + threadIdx.x] = s[63 - threadIdx.x];
  }
}
KERNEL blocks_collide(const float* x, float* y, int n) {
  y[threadIdx.x] = blockIdx.x;
}
KERNEL blocks_collide_same(const float* x, float* y, int n) {
  y[threadIdx.x] = 1;
}
KERNEL load_add_store(const float* x, float* y, int n) { y[0] += x[threadIdx.x]; }
KERNEL load_add_store_ok(const float* x, float* y, int n) { atomicAdd(y, x[threadIdx.x]); }
KERNEL flag_without_fence(const float* x, float* y, int n) {
  volatile int* flag = reinterpret_cast<volatile int*>(y + 1);
  if (blockIdx.x == 0) {
    y[0] = 1;
    *flag = 1;
  } else {
    while (*flag == 0) {
    }
    y[2] = y[0];
  }
}
KERNEL copy_without_wait(const float* x, float* y, int n) {
  __shared__ alignas(16) float s[128];
  __pipeline_memcpy_async(&s[threadIdx.x * 4], &x[threadIdx.x * 4], 16);
  __pipeline_commit();
  y[threadIdx.x] = s[threadIdx.x * 4];
}
KERNEL copy_without_barrier(const float* x, float* y, int n) {
  __shared__ alignas(16) float s[128];
  __pipeline_memcpy_async(&s[threadIdx.x * 4], &x[threadIdx.x * 4], 16);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  y[threadIdx.x] = s[127 - threadIdx.x * 4];
}

KERNEL divergent_barrier(const float* x, float* y, int n) {
  __shared__ float s[64];
  s[threadIdx.x] = 1;
  if (threadIdx.x < 16) {
    __syncthreads();
    y[threadIdx.x] = s[threadIdx.x + 1];
  } else {
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = s[threadIdx.x] + n;
  }
}
KERNEL barrier_skipped(const float* x, float* y, int n) {
  if (threadIdx.x < 16) __syncthreads();
  y[threadIdx.x] = 1;
  __syncthreads();
  y[threadIdx.x] += n;
  if (threadIdx.x >= 16) __syncthreads();
  __syncthreads();
}
KERNEL wrong_count(const float* x, float* y, int n) {
  if (threadIdx.x < 32) asm volatile("bar.sync 1, 96;" ::: "memory");
  y[threadIdx.x] = 1;
}
KERNEL missing_lane(const float* x, float* y, int n) {
  float v = 1;
  if (threadIdx.x < 16) v = __shfl_xor_sync(0xffffffffu, v, 1);
  __syncwarp();
  y[threadIdx.x] = v;
  if (threadIdx.x >= 16) __syncwarp(0xffff0000u);
}
KERNEL spins_for_ever(const float* x, float* y, int n) {
  volatile float* p = y;
  while (p[0] == 0) {
  }
}
KERNEL traps(const float* x, float* y, int n) {
  if (threadIdx.x == 3) __trap();
}
