__device__ __forceinline__ float warp_sum(float v) {
  for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
  return v;
}

__device__ __noinline__ float segment(const float* p, long long n, int lane) {
  float s = 0.0f;
  for (long long j = lane; j < n; j += 32) {
    float v;
    if (__isShared(p)) {
      const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(p + j));
      asm volatile("ld.shared.f32 %0, [%1];" : "=f"(v) : "r"(at) : "memory");
    } else {
      v = p[j];
    }
    s += v;
  }
  return s;
}

extern "C" __global__ void row_sum(const float* __restrict__ x, float* __restrict__ y, long long rows,
                                   long long columns) {
  __shared__ float head[4][64];
  const int lane = threadIdx.x;
  const long long row = (long long)blockIdx.x * 4 + threadIdx.y;
  if (row >= rows) return;
  const float* in = x + row * columns;
  const long long n = columns < 64 ? columns : 64;
  for (long long j = lane; j < n; j += 32) head[threadIdx.y][j] = in[j];
  __syncwarp();
  float s = segment(head[threadIdx.y], n, lane);
  s += segment(in + n, columns - n, lane);
  s = warp_sum(s);
  if (lane == 0) y[row] = s;
}
