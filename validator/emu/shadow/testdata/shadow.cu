// Kernels that lose precision on a line that is known, marked "LOSES <kernel>". Compiled with: nvcc -ptx -arch=sm_90 -lineinfo shadow.cu,
// and the directories taken out of the .file lines.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>

using bf16 = __nv_bfloat16;

// --- narrow accumulators
extern "C" __global__ void sum_bf16(bf16* out, const bf16* x, int n) {
  bf16 acc = __float2bfloat16(0.0f);
  for (int i = 0; i < n; ++i) {
    acc = __hadd(acc, x[threadIdx.x * n + i]);  // LOSES sum_bf16
  }
  out[threadIdx.x] = acc;
}
extern "C" __global__ void sum_f32(bf16* out, const bf16* x, int n) {
  float acc = 0.0f;
  for (int i = 0; i < n; ++i) {
    acc += __bfloat162float(x[threadIdx.x * n + i]);
  }
  out[threadIdx.x] = __float2bfloat16(acc);  // LOSES sum_f32
}
extern "C" __global__ void sum_rounded(float* out, const float* x, int n) {
  float acc = 0.0f;
  for (int i = 0; i < n; ++i) {
    acc = __bfloat162float(__float2bfloat16(acc + x[threadIdx.x * n + i]));  // LOSES sum_rounded
  }
  out[threadIdx.x] = acc;
}
extern "C" __global__ void sum_half2(float* out, const half2* x, int n) {
  half2 acc = __floats2half2_rn(0.0f, 0.0f);
  for (int i = 0; i < n; ++i) {
    acc = __hadd2(acc, x[threadIdx.x * n + i]);  // LOSES sum_half2
  }
  out[threadIdx.x] = __low2float(acc) + __high2float(acc);
}
extern "C" __global__ void sum_shuffled(float* out, const float* x, int n) {
  bf16 value = __float2bfloat16(x[threadIdx.x]);
  for (int lane = 16; lane > 0; lane /= 2) {
    const bf16 other = __shfl_xor_sync(0xffffffffu, value, lane);
    value = __hadd(value, other);  // LOSES sum_shuffled
  }
  if (threadIdx.x == 0) out[0] = __bfloat162float(value);
}
extern "C" __global__ void sum_overflow(float* out, const half* x, int n) {
  half acc = __float2half(0.0f);
  for (int i = 0; i < n; ++i) {
    acc = __hadd(acc, x[threadIdx.x * n + i]);  // LOSES sum_overflow
  }
  out[threadIdx.x] = __half2float(acc) * 0.5f;
}

// --- atomics
extern "C" __global__ void atomic_bf16(bf16* out, const bf16* x, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    atomicAdd(&out[0], x[i]);  // LOSES atomic_bf16
  }
}
extern "C" __global__ void atomic_half2(half2* out, const half2* x, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    atomicAdd(&out[0], x[i]);  // LOSES atomic_half2
  }
}
extern "C" __global__ void atomic_f32(float* out, const bf16* x, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    atomicAdd(&out[0], __bfloat162float(x[i]));  // LOSES atomic_f32
  }
}
__device__ void AddByCas(bf16* address, bf16 value) {
  unsigned short* const raw = reinterpret_cast<unsigned short*>(address);
  unsigned short old = *raw, assumed;
  do {
    assumed = old;
    const bf16 sum = __float2bfloat16(__bfloat162float(__ushort_as_bfloat16(assumed)) + __bfloat162float(value));  // LOSES atomic_cas
    old = atomicCAS(raw, assumed, __bfloat16_as_ushort(sum));
  } while (old != assumed);
}
extern "C" __global__ void atomic_cas(bf16* out, const bf16* x, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) AddByCas(&out[0], x[i]);
}

// --- conversions by hand
extern "C" __global__ void cut_by_shift(unsigned short* out, const unsigned short* x, int n) {
  float acc = 0.0f;
  for (int i = 0; i < n; ++i) {
    acc += __uint_as_float(static_cast<unsigned>(x[threadIdx.x * n + i]) << 16);
  }
  out[threadIdx.x] = static_cast<unsigned short>(__float_as_uint(acc) >> 16);  // LOSES cut_by_shift
}
extern "C" __global__ void cut_by_mask(float* out, const float* x, int n) {
  float acc = 0.0f;
  for (int i = 0; i < n; ++i) {
    acc += x[threadIdx.x * n + i];
    acc = __uint_as_float(__float_as_uint(acc) & 0xffff0000u);  // LOSES cut_by_mask
  }
  out[threadIdx.x] = acc;
}
extern "C" __global__ void round_by_hand(unsigned short* out, const float* x, int n) {
  float acc = 0.0f;
  for (int i = 0; i < n; ++i) {
    acc += x[threadIdx.x * n + i];
  }
  const unsigned bits = __float_as_uint(acc);
  out[threadIdx.x] = static_cast<unsigned short>((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);  // LOSES round_by_hand
}
extern "C" __global__ void twice_rounded(bf16* out, const float* x, int n) {
  float acc = 0.0f;
  for (int i = 0; i < n; ++i) {
    acc += x[threadIdx.x * n + i];
  }
  const half narrow = __float2half(acc * 0.001f);  // LOSES twice_rounded
  out[threadIdx.x] = __float2bfloat16(__half2float(narrow) * 1000.0f);
}

// --- functions, flow and memory
__device__ __noinline__ float Cut(float value) {
  return __half2float(__float2half(value));  // LOSES through_call
}
extern "C" __global__ void through_call(float* out, const float* x, int n) {
  float acc = 0.0f;
  for (int i = 0; i < n; ++i) {
    acc = Cut(acc + x[threadIdx.x * n + i]);
  }
  out[threadIdx.x] = acc;
}
extern "C" __global__ void store_partials(bf16* scratch, const float* x, int n) {
  scratch[threadIdx.x] = __float2bfloat16(x[threadIdx.x]);  // LOSES load_partials
}
extern "C" __global__ void load_partials(float* out, const bf16* scratch, int n) {
  __shared__ alignas(16) bf16 tile[32];
  if (threadIdx.x < 4) __pipeline_memcpy_async(tile + 8 * threadIdx.x, scratch + 8 * threadIdx.x, 16);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  if (threadIdx.x != 0) return;
  float acc = 0.0f;
  for (int i = 0; i < 32; ++i) acc += __bfloat162float(tile[i]);
  out[0] = acc;
}
extern "C" __global__ void wrong_formula(float* out, const float* x, int n) {
  float acc = 0.0f;
  for (int i = 0; i < n; ++i) {
    acc += x[threadIdx.x * n + i];
  }
  out[threadIdx.x] = acc * 1.01f;
}
extern "C" __global__ void kahan(float* out, const float* x, int n) {
  float acc = 0.0f, carry = 0.0f;
  for (int i = 0; i < n; ++i) {
    const float y = x[threadIdx.x * n + i] - carry;
    const float t = acc + y;
    carry = (t - acc) - y;
    acc = t;
  }
  out[threadIdx.x] = acc;
}
extern "C" __global__ void one_pass_variance(float* out, const float* x, int n) {
  float sum = 0.0f, squares = 0.0f;
  for (int i = 0; i < n; ++i) {
    const float value = x[threadIdx.x * n + i];
    sum += value;
    squares = fmaf(value, value, squares);
  }
  const float mean = sum / n;
  out[threadIdx.x] = squares / n - mean * mean;
}
// Accurate library functions: they round to integers by adding large numbers, and take floats apart.
extern "C" __global__ void functions(float* out, const float* x, int n) {
  const float start = x[threadIdx.x] * 1.7f;
  const float value = start + 0.3f;
  float* const at = out + threadIdx.x * 8;
  at[0] = expf(value);
  at[1] = logf(fabsf(value) + 0.1f);
  at[2] = sinf(value);
  at[3] = tanhf(value);
  at[4] = powf(fabsf(value) + 0.1f, 1.3f);
  at[5] = erff(value);
  at[6] = rsqrtf(fabsf(value) + 0.1f);
  at[7] = copysignf(__expf(-fabsf(value)), value);
}
// Products of a tile, with the accumulator rounded after every step.
extern "C" __global__ void matrix(float* out, const unsigned* a, const unsigned* b, int steps) {
  float d[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  for (int s = 0; s < steps; ++s) {
    const unsigned* const mine = a + (s * 32 + threadIdx.x) * 4;
    const unsigned* const theirs = b + (s * 32 + threadIdx.x) * 2;
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(mine[0]), "r"(mine[1]), "r"(mine[2]), "r"(mine[3]), "r"(theirs[0]), "r"(theirs[1]));
    for (int i = 0; i < 4; ++i) {
      d[i] = __bfloat162float(__float2bfloat16(d[i]));  // LOSES matrix
    }
  }
  for (int i = 0; i < 4; ++i) out[threadIdx.x * 4 + i] = d[i];
}
