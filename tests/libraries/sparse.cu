// Sparse warpgroup products with A in registers, on operands made from a seed: out[i * 128 + t] is
// register i of thread t. B lies in shared memory in cores of 8 by 16 bytes, 128 bytes apart.
using u32 = unsigned;
using u64 = unsigned long long;

__device__ u32 Hash(u32 x) {
  x *= 0x9E3779B1u;
  x ^= x >> 15;
  x *= 0x85EBCA77u;
  return x ^ x >> 13;
}

/// Two of four, by the positions in four bits of metadata.
__constant__ u32 kPositions[6] = {4, 8, 12, 9, 13, 14};
constexpr int kOneOfTwo = 256;  ///< The bit of `fill` that asks for metadata of tf32.

/// A word of operands: small integers of one type, or random values of one magnitude.
__device__ u32 Fill(u32 h, int fill) {
  const u32 halves[5] = {0, 0x3c00, 0x4000, 0xbc00, 0xc000};
  const u32 words[5] = {0, 0x3f800000, 0x40000000, 0xbf800000, 0xc0000000};
  const u32 bytes[5] = {0, 0x38, 0x40, 0xb8, 0xc0};
  switch (fill & 15) {
    case 1:
      return h;
    case 2:
      return halves[h % 5] | halves[(h >> 8) % 5] << 16;
    case 3:
      return words[h % 5];
    case 4:
      return bytes[h % 5] | bytes[(h >> 4) % 5] << 8 | bytes[(h >> 12) % 5] << 16 |
             bytes[(h >> 20) % 5] << 24;
    case 5:
      return (h & 0x83ff83ff) | ((0x38003800 + (h & 0x18001800) / 2) & 0x7c007c00);
    case 6:
      return (h & 0x807fffff) | (0x3f000000 + (h >> 3 & 0x800000));
    case 7:
      return (h & 0x87878787) | 0x38383838;
    default:
      return h & 0x03030303;
  }
}

#define SPARSE(name, shape, types, selector, scales, constraint, Type)                             \
  extern "C" __global__ void name(u32* out, int seed, int fill) {                                  \
    __shared__ __align__(128) u32 tile[128];                                                       \
    const int t = threadIdx.x;                                                                     \
    u32 a[4], metadata = 0;                                                                        \
    Type d[4];                                                                                     \
    for (int i = 0; i < 4; ++i) {                                                                  \
      a[i] = Fill(Hash(seed * 7919 + t * 4 + i), fill);                                            \
      d[i] = i;                                                                                    \
    }                                                                                              \
    tile[t] = Fill(Hash(seed * 7919 + 7777 + t), fill);                                            \
    for (int i = 0; i < 8; ++i) {                                                                  \
      const u32 h = Hash(seed * 7919 + 9999 + t * 8 + i);                                          \
      metadata |= ((fill & kOneOfTwo) != 0 ? (h & 1 ? 14u : 4u) : kPositions[h % 6]) << 4 * i;     \
    }                                                                                              \
    asm volatile("fence.proxy.async;" ::: "memory");                                               \
    __syncthreads();                                                                               \
    const u64 b = static_cast<u64>(__cvta_generic_to_shared(tile)) >> 4 | 8ull << 16 | 16ull << 32; \
    asm volatile(                                                                                  \
        "wgmma.fence.sync.aligned;\nwgmma.mma_async.sp.sync.aligned." shape "." types              \
        " {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, %9, " selector ", 1" scales ";\n"                \
        "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;"                       \
        : "+" constraint(d[0]), "+" constraint(d[1]), "+" constraint(d[2]), "+" constraint(d[3])   \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(metadata));                      \
    for (int i = 0; i < 4; ++i) out[i * 128 + t] = *reinterpret_cast<u32*>(&d[i]);                 \
  }

SPARSE(halves_of_pair_0, "m64n8k32", "f32.f16.f16", "0", ", 1, 1, 0", "f", float)
SPARSE(halves_of_pair_1, "m64n8k32", "f32.f16.f16", "1", ", 1, 1, 0", "f", float)
SPARSE(words_of_pair_0, "m64n8k16", "f32.tf32.tf32", "0", ", 1, 1", "f", float)
SPARSE(words_of_pair_1, "m64n8k16", "f32.tf32.tf32", "1", ", 1, 1", "f", float)
SPARSE(fp8, "m64n8k64", "f32.e4m3.e4m3", "0", ", 1, 1", "f", float)
SPARSE(bytes, "m64n8k64", "s32.s8.u8", "0", "", "r", int)
