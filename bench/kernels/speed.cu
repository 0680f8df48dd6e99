// The kernels of emu_bench. Compiled with: nvcc -ptx -arch=sm_90 -lineinfo speed.cu
#include <cuda_fp16.h>
#include <mma.h>

#define KERNEL extern "C" __global__ void

KERNEL fma_chain(float* out, int n) {
  float a = threadIdx.x, b = 0.999f, c = 0.5f;
#pragma unroll 16
  for (int i = 0; i < n; ++i) a = fmaf(a, b, c);
  out[blockIdx.x * blockDim.x + threadIdx.x] = a;
}

KERNEL copy16(const float4* x, float4* y, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = x[i];
}

KERNEL reduce(const float* x, float* out, int n) {
  __shared__ float part[32];
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += x[(size_t)blockIdx.x * n + i];
  for (int o = 16; o > 0; o /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, o);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x < 32) {
    float v = threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0;
    for (int o = 16; o > 0; o /= 2) v += __shfl_xor_sync(0xffffffffu, v, o);
    if (threadIdx.x == 0) out[blockIdx.x] = v;
  }
}

// 16 x 16 threads, 64 x 64 tile, 4 x 4 results a thread.
KERNEL tiled_gemm(const float* a, const float* b, float* c, int n) {
  __shared__ float ta[16][64 + 4];
  __shared__ float tb[16][64];
  int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  float acc[4][4] = {};
  for (int k0 = 0; k0 < n; k0 += 16) {
    for (int i = threadIdx.x; i < 1024; i += 256) {
      ta[i % 16][i / 16] = a[(blockIdx.y * 64 + i / 16) * n + k0 + i % 16];
      tb[i / 64][i % 64] = b[(k0 + i / 64) * n + blockIdx.x * 64 + i % 64];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 16; ++k) {
      float ra[4], rb[4];
      for (int i = 0; i < 4; ++i) ra[i] = ta[k][ty * 4 + i];
      for (int j = 0; j < 4; ++j) rb[j] = tb[k][tx * 4 + j];
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) acc[i][j] += ra[i] * rb[j];
    }
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) c[(blockIdx.y * 64 + ty * 4 + i) * n + blockIdx.x * 64 + tx * 4 + j] = acc[i][j];
}

// One warp a 16 x 8 tile, mma.m16n8k16.
KERNEL mma_gemm(const __half* a, const __half* b, float* c, int n) {
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int row = blockIdx.y * 16, col = (blockIdx.x * (blockDim.x / 32) + warp) * 8;
  float d[4] = {};
  int g = lane / 4, t = lane % 4;
  for (int k = 0; k < n; k += 16) {
    unsigned ra[4], rb[2];
    ra[0] = *(const unsigned*)&a[(row + g) * n + k + t * 2];
    ra[1] = *(const unsigned*)&a[(row + g + 8) * n + k + t * 2];
    ra[2] = *(const unsigned*)&a[(row + g) * n + k + t * 2 + 8];
    ra[3] = *(const unsigned*)&a[(row + g + 8) * n + k + t * 2 + 8];
    rb[0] = *(const unsigned*)&b[(col + g) * n + k + t * 2];
    rb[1] = *(const unsigned*)&b[(col + g) * n + k + t * 2 + 8];
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
  }
  c[(row + g) * n + col + t * 2] = d[0];
  c[(row + g) * n + col + t * 2 + 1] = d[1];
  c[(row + g + 8) * n + col + t * 2] = d[2];
  c[(row + g + 8) * n + col + t * 2 + 1] = d[3];
}

KERNEL histogram(const unsigned* x, unsigned* bins, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&bins[x[i] % 256], 1);
}

KERNEL divergent(const unsigned* x, unsigned* y, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    unsigned v = x[i] % 1000 + 1, steps = 0;
    while (v != 1 && steps < 100) {
      v = v % 2 ? 3 * v + 1 : v / 2;
      ++steps;
    }
    y[i] = steps;
  }
}
