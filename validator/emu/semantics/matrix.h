// Matrix products as tensor cores compute them: mma, wmma, wgmma (PTX ISA 9.7.14, 9.7.15).
//
// PTX leaves the order and precision of accumulation open. The model here is that of an H200, found
// by fitting recorded results, all of which it reproduces bit for bit (tests/conformance):
//   - Products are exact. The accumulator and all products of a block are aligned to the largest
//   exponent among them (of a product: the
//     sum of its factors' exponents, before normalisation) and each truncated to 25 bits below it;
//     their sum is exact, and truncated to f32. A sum beyond f32 is infinite. A block is 16
//     products for f16 and bf16, 8 for tf32 (wmma: 4); with a sparse A it is 16 (8) that are
//     stored.
//   - e4m3 and e5m2 (mma only) are multiplied as f16: the first block takes k with k % 4 < 2, the
//   second the others; both start from
//     zero, and the accumulator is added last, rounded to nearest.
//     With f16 accumulators (mma only) both halves are products of f16 with f16 sums, and the
//     accumulator is added last, in f16: all but one of 4,608 recorded results, which is one unit in
//     the last place off.
//   - f16 accumulators are computed as above and rounded to nearest once at the end.
//     wgmma aligns 32 products of theirs to 13 bits, and keeps 13 fraction bits of each sum.
//   - mma.m8n8k4 on f16 is a chain of f32 multiply-adds from zero, to which the accumulator is
//   added last.
//   - f64 is a chain of fused multiply-adds in the order of k.
//   - Integers are exact, modulo 2^32 or, with .satfinite, clamped at the end.
// Other chips align and truncate otherwise (sm_70: blocks of 4; sm_80: of 8); results then differ
// by some units in the last place of the largest term.
//
// Matrices are arrays of element bits, all by columns: A's element (i, l) is a[l * m + i], B's (l,
// j) is b[j * k + l], and an accumulator's (i, j) is c[j * m + i].
//
//   TensorMultiply({.m = 16, .n = 8, .k = 16, .a = TensorType::kF16, .b = TensorType::kF16}, a, b,
//   c, d);
#pragma once

#include <cstdint>

namespace assay::emu {

enum class TensorType : std::uint8_t { kF16, kBF16, kTF32, kE4M3, kE5M2 };

struct TensorProduct {
  int m = 0;
  int n = 0;  ///< A multiple of 8.
  int k = 0;  ///< A sparse A is given with its zeros.
  TensorType a{};
  TensorType b{};
  bool sparse = false;
  bool warpgroup = false;   ///< wgmma.
  bool steps_of_4 = false;  ///< Blocks of 4 (wmma on tf32).
  bool chain = false;  ///< mma.m8n8k4: multiply-adds in f32 from zero, the accumulator added last.
  bool half_accumulator = false;  ///< c holds f16 bits.
  bool half_result = false;       ///< d does.
};
inline constexpr int kMaxTensorM = 64;
inline constexpr int kMaxTensorN = 256;
inline constexpr int kMaxTensorK = 64;

/// An element that a sparse A does not have. It counts as zero, but meets no infinity; it is marked
/// in bits that the type does not use (in tf32 the lowest, which elements that are there must have
/// clear).
constexpr std::uint32_t TensorAbsent(TensorType type) {
  return type == TensorType::kTF32 ? 1u : 1u << 16;
}

/// d = a b + c. Elements are the low bits of each entry (tf32: f32 bits, of which the low 13 are
/// ignored). c and d hold f32 bits unless the product says f16; they may be the same array.
void TensorMultiply(const TensorProduct& product, const std::uint32_t* a, const std::uint32_t* b,
                    const std::uint32_t* c, std::uint32_t* d);

/// f64, with .rn, .rz, .rm or .rp as 0 to 3 (Round).
void TensorMultiplyF64(int m, int n, int k, int rounding, const double* a, const double* b,
                       const double* c, double* d);

/// Integer elements already extended to 32 bits.
void TensorMultiplyInteger(int m, int n, int k, bool saturate, const std::int32_t* a,
                           const std::int32_t* b, const std::int32_t* c, std::int32_t* d);

/// Single bits, 32 an entry (k is a multiple of 32): population counts of a^b or a&b.
void TensorMultiplyBits(int m, int n, int k, bool exclusive_or, const std::uint32_t* a,
                        const std::uint32_t* b, const std::int32_t* c, std::int32_t* d);

}  // namespace assay::emu
