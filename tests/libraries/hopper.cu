// TMA and wgmma by hand, as kernels for Hopper write them: tiles arrive by tensor maps, swizzled, and
// products read them through matrix descriptors.
#include <cuda_fp16.h>

using u32 = unsigned;
using u64 = unsigned long long;

struct alignas(64) TensorMap {
  unsigned char opaque[128];
};

__device__ u32 Shared(const void* pointer) {
  return static_cast<u32>(__cvta_generic_to_shared(pointer));
}
__device__ void InitBarrier(u64* barrier) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(Shared(barrier)) : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ void Expect(u64* barrier, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(Shared(barrier)),
               "r"(bytes)
               : "memory");
}
__device__ void Wait(u64* barrier, u32 parity) {
  asm volatile(
      "{\n.reg .pred done;\n$Again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra $Again;\n}\n" ::"r"(
          Shared(barrier)),
      "r"(parity)
      : "memory");
}
__device__ void LoadTile(void* to, const TensorMap* map, int x, int y, u64* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3}], [%4];" ::"r"(Shared(to)),
      "l"(map), "r"(x), "r"(y), "r"(Shared(barrier))
      : "memory");
}

/// One box of 16-bit elements, as it lies in shared memory, to `out`.
extern "C" __global__ void raw_tile(const __grid_constant__ TensorMap map, unsigned short* out, int x,
                                    int y, int elements) {
  extern __shared__ __align__(1024) unsigned short tile[];
  __shared__ u64 barrier;
  if (threadIdx.x == 0) InitBarrier(&barrier);
  __syncthreads();
  if (threadIdx.x == 0) {
    Expect(&barrier, static_cast<u32>(elements) * 2);
    LoadTile(tile, &map, x, y, &barrier);
  }
  Wait(&barrier, 0);
  for (int i = threadIdx.x; i < elements; i += blockDim.x) out[i] = tile[i];
}

/// out(box at x, y) = in(box at 0, 0), or plus it where `add` says so; 32 by 8 floats.
extern "C" __global__ void store_tile(const __grid_constant__ TensorMap from,
                                      const __grid_constant__ TensorMap to, int x, int y, int add) {
  __shared__ __align__(128) float tile[8 * 32];
  __shared__ u64 barrier;
  if (threadIdx.x == 0) InitBarrier(&barrier);
  __syncthreads();
  if (threadIdx.x == 0) {
    Expect(&barrier, sizeof(tile));
    LoadTile(tile, &from, 0, 0, &barrier);
  }
  Wait(&barrier, 0);
  tile[threadIdx.x] *= 2.0f;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x != 0) return;
  if (add != 0) {
    asm volatile(
        "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group "
        "[%0, {%1, %2}], [%3];" ::"l"(&to),
        "r"(x), "r"(y), "r"(Shared(tile))
        : "memory");
  } else {
    asm volatile(
        "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&to),
        "r"(x), "r"(y), "r"(Shared(tile))
        : "memory");
  }
  asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
}

__device__ u64 Descriptor(const void* start, u32 leading, u32 stride, u32 mode) {
  return (u64{Shared(start)} & 0x3ffff) >> 4 | u64{leading >> 4} << 16 | u64{stride >> 4} << 32 |
         u64{mode} << 62;
}

template <int kTransposeA, int kTransposeB>
__device__ void Product64(float (&d)[32], u64 a, u64 b, int accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "%32, %33, p, 1, 1, %35, %36;\n}\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
      : "l"(a), "l"(b), "r"(accumulate), "n"(kTransposeA), "n"(kTransposeB));
}
template <int kTransposeA, int kTransposeB>
__device__ void Product128(float (&d)[64], u64 a, u64 b, int accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "%64, %65, p, 1, 1, %67, %68;\n}\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
      : "l"(a), "l"(b), "r"(accumulate), "n"(kTransposeA), "n"(kTransposeB));
}

template <int kN, int kRegisters>
__device__ void StoreAccumulators(const float (&d)[kRegisters], float* out) {
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  for (int i = 0; i < kRegisters; ++i) {
    const int row = 16 * warp + 8 * (i / 2 % 2) + lane / 4;
    const int column = 8 * (i / 4) + 2 * (lane % 4) + i % 2;
    out[row * kN + column] = d[i];
  }
}

/// D(64 by 64) = A(64 by k) B(64 by k)^T, both contiguous along k: tiles of one swizzle span.
template <int kSpan, u32 kMode>
__device__ void AlongK(const TensorMap* a_map, const TensorMap* b_map, float* out, int k) {
  constexpr int kElements = kSpan / 2;
  __shared__ __align__(1024) __half a[64 * kElements];
  __shared__ __align__(1024) __half b[64 * kElements];
  __shared__ u64 barrier;
  if (threadIdx.x == 0) InitBarrier(&barrier);
  __syncthreads();
  float d[32];
  for (int i = 0; i < 32; ++i) d[i] = 0;
  u32 parity = 0;
  for (int at = 0; at < k; at += kElements) {
    if (threadIdx.x == 0) {
      Expect(&barrier, 2 * 64 * kSpan);
      LoadTile(a, a_map, at, 0, &barrier);
      LoadTile(b, b_map, at, 0, &barrier);
    }
    Wait(&barrier, parity);
    parity ^= 1;
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    for (int step = 0; step < kElements; step += 16) {
      Product64<0, 0>(d, Descriptor(a + step, 16, 8 * kSpan, kMode),
                      Descriptor(b + step, 16, 8 * kSpan, kMode), 1);
    }
    asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
    __syncthreads();
  }
  StoreAccumulators<64>(d, out);
}
extern "C" __global__ void along_k_128(const __grid_constant__ TensorMap a,
                                       const __grid_constant__ TensorMap b, float* out, int k) {
  AlongK<128, 1>(&a, &b, out, k);
}
extern "C" __global__ void along_k_64(const __grid_constant__ TensorMap a,
                                      const __grid_constant__ TensorMap b, float* out, int k) {
  AlongK<64, 2>(&a, &b, out, k);
}
extern "C" __global__ void along_k_32(const __grid_constant__ TensorMap a,
                                      const __grid_constant__ TensorMap b, float* out, int k) {
  AlongK<32, 3>(&a, &b, out, k);
}

/// D(64 by 128) = A(32 by 64)^T B(32 by 128): A contiguous along m, B along n, swizzled by kSpan bytes.
template <int kSpan, u32 kMode>
__device__ void AcrossK(const TensorMap* a_map, const TensorMap* b_map, float* out) {
  constexpr int kK = 32;
  constexpr int kElements = kSpan / 2;
  __shared__ __align__(1024) __half a[64 * kK];
  __shared__ __align__(1024) __half b[128 * kK];
  __shared__ u64 barrier;
  if (threadIdx.x == 0) InitBarrier(&barrier);
  __syncthreads();
  if (threadIdx.x == 0) {
    Expect(&barrier, sizeof(a) + sizeof(b));
    for (int m = 0; m < 64; m += kElements) LoadTile(a + m * kK, a_map, m, 0, &barrier);
    for (int n = 0; n < 128; n += kElements) LoadTile(b + n * kK, b_map, n, 0, &barrier);
  }
  Wait(&barrier, 0);
  float d[64];
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  for (int step = 0; step < kK; step += 16) {
    Product128<1, 1>(d, Descriptor(a + step * kElements, kSpan * kK, 8 * kSpan, kMode),
                     Descriptor(b + step * kElements, kSpan * kK, 8 * kSpan, kMode), step != 0);
  }
  asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
  StoreAccumulators<128>(d, out);
}
extern "C" __global__ void across_k_128(const __grid_constant__ TensorMap a,
                                        const __grid_constant__ TensorMap b, float* out) {
  AcrossK<128, 1>(&a, &b, out);
}
extern "C" __global__ void across_k_64(const __grid_constant__ TensorMap a,
                                       const __grid_constant__ TensorMap b, float* out) {
  AcrossK<64, 2>(&a, &b, out);
}
extern "C" __global__ void across_k_32(const __grid_constant__ TensorMap a,
                                       const __grid_constant__ TensorMap b, float* out) {
  AcrossK<32, 3>(&a, &b, out);
}
/// Without swizzling: cores of 8 by 8 elements, each 128 bytes, laid out by the threads themselves.
template <int kAcross>
__device__ void Plain(const __half* a_in, const __half* b_in, float* out) {
  __shared__ __align__(128) __half a[64 * 16];
  __shared__ __align__(128) __half b[64 * 16];
  for (int i = threadIdx.x; i < 64 * 16; i += 128) {
    const int outer = i % 64;
    const int k = i / 64;
    // Along k: the core of (outer / 8, k / 8), rows of 8 elements along k; across: rows along outer.
    const int core = (outer / 8) * 2 + k / 8;
    const int within = kAcross ? k % 8 * 8 + outer % 8 : outer % 8 * 8 + k % 8;
    a[core * 64 + within] = a_in[outer * 16 + k];
    b[core * 64 + within] = b_in[outer * 16 + k];
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  float d[32];
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  // Neighbours along k lie 128 bytes apart, along m and n 256.
  Product64<kAcross, kAcross>(d, Descriptor(a, 128, 256, 0), Descriptor(b, 128, 256, 0), 0);
  asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
  StoreAccumulators<64>(d, out);
}
extern "C" __global__ void plain_along_k(const __half* a, const __half* b, float* out) {
  Plain<0>(a, b, out);
}
extern "C" __global__ void plain_across_k(const __half* a, const __half* b, float* out) {
  Plain<1>(a, b, out);
}
/// Which chunk of 16 bytes a product reads for column n and k = 0 (out[n]) or k = 8 (out[64 + n]): A
/// picks k = row, and every element of B is the number of its chunk.
extern "C" __global__ void chunks_read(float* out, int start, int base_offset, int swizzle) {
  extern __shared__ __align__(1024) __half chunks[];
  for (int i = threadIdx.x; i < 16384; i += 128) chunks[i] = __int2half_rn(i / 8);
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  const int row = threadIdx.x / 4;
  const int pair = 2 * (threadIdx.x % 4);
  const u32 one = row == pair ? 0x3c00u : row == pair + 1 ? 0x3c000000u : 0u;
  const u64 b = ((Shared(chunks) + start) >> 4 & 0x3fff) | 1ull << 16 | 64ull << 32 |
                static_cast<u64>(base_offset) << 49 | static_cast<u64>(swizzle) << 62;
  float d[32] = {};
  asm volatile(
      "wgmma.fence.sync.aligned;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, "
      "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, {%32, %33, %33, %32}, %34, 1, "
      "1, 1, 0;\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),
        "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]),
        "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]),
        "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]),
        "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
      : "r"(one), "r"(0), "l"(b));
  if (threadIdx.x >= 4) return;
  for (int i = 0; i < 8; ++i) {
    for (int e = 0; e < 4; ++e) out[e / 2 * 64 + i * 8 + pair + e % 2] = d[i * 4 + e];
  }
}

#define REPLACE(field, bits, value, ...)                                                          \
  asm volatile("tensormap.replace.tile." field ".shared::cta.b1024." bits " [%0], " value ";" ::"r"( \
                   to),                                                                           \
               ##__VA_ARGS__                                                                      \
               : "memory")

/// A map of 40 by 20 elements with rows `stride` bytes apart, made here from zeros; its box of 16 by 8
/// at (32, 16) to `out`.
extern "C" __global__ void own_map(const unsigned short* in, TensorMap* map, unsigned short* out,
                                   int type, int stride) {
  __shared__ __align__(128) unsigned short tile[128];
  __shared__ __align__(128) u32 made[32];
  __shared__ u64 barrier;
  made[threadIdx.x] = 0;
  __syncwarp();
  if (threadIdx.x == 0) {
    const u32 to = Shared(made);
    REPLACE("global_address", "b64", "%1", "l"(in));
    REPLACE("rank", "b32", "1");
    REPLACE("box_dim", "b32", "0, %1", "r"(16));
    REPLACE("box_dim", "b32", "1, 8");
    REPLACE("global_dim", "b32", "0, 40");
    REPLACE("global_dim", "b32", "1, 20");
    REPLACE("global_stride", "b64", "0, %1", "l"(static_cast<u64>(stride)));
    REPLACE("element_stride", "b32", "0, 1");
    REPLACE("element_stride", "b32", "1, 1");
    if (type == 1) REPLACE("elemtype", "b32", "1");
    if (type == 12) REPLACE("elemtype", "b32", "12");
    REPLACE("interleave_layout", "b32", "0");
    REPLACE("swizzle_mode", "b32", "0");
    REPLACE("fill_mode", "b32", "0");
    InitBarrier(&barrier);
  }
  __syncwarp();
  asm volatile(
      "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "
      "[%0], [%1], 128;" ::"l"(map),
      "r"(Shared(made))
      : "memory");
  asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map) : "memory");
  __syncwarp();
  if (threadIdx.x == 0) {
    Expect(&barrier, sizeof(tile));
    LoadTile(tile, map, 32, 16, &barrier);
  }
  Wait(&barrier, 0);
  for (int i = threadIdx.x; i < 128; i += 32) out[i] = tile[i];
}
