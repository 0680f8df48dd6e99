// The products of semantics/matrix.h for floating-point elements, compiled once a level.
#include "validator/emu/handlers/tensor.h"

#include "validator/emu/semantics/floating.h"
#include "validator/emu/semantics/half.h"
#include "validator/emu/semantics/matrix.h"

namespace assay::emu::inline ASSAY_EMU_LEVEL {
namespace {

/// Bits kept below the largest exponent of a block; for wgmma on 8-bit types, where sums keep no
/// more than that either.
constexpr int kAlignBits = 25;
constexpr int kAlignBitsShort = 13;
/// The exponent of zero: below all others.
constexpr s32 kZeroExponent = -100000;
/// The exponent of an infinite accumulator.
constexpr s32 kInfiniteExponent = 1000;
/// Columns worked on together.
constexpr int kColumns = 8;

s32 ExponentOfF32(float value) {
  const s32 field = static_cast<s32>(ToBits(value) >> 23 & 0xff);
  return value == 0.0f  ? kZeroExponent
         : field == 255 ? kInfiniteExponent
                        : (field == 0 ? 1 : field) - 127;
}

/// Fields of a type, and where its bits begin. e4m3 has no infinity; its only NaN has all bits set.
template <int kExponentBits, int kFractionBits, int kShift = 0, bool kHasInfinity = true>
struct Fields {
  static constexpr u32 kFull = (1u << kExponentBits) - 1;
  static constexpr s32 kBias = (1 << (kExponentBits - 1)) - 1;
  static u32 Field(u32 bits) { return bits >> (kFractionBits + kShift) & kFull; }
  static u32 Fraction(u32 bits) { return bits >> kShift & ((1u << kFractionBits) - 1); }
  static bool IsSpecial(u32 bits) {
    return Field(bits) == kFull && (kHasInfinity || Fraction(bits) == (1u << kFractionBits) - 1);
  }
  /// Exact; special values become zero.
  static float Value(u32 bits) {
    const u32 magnitude = bits >> kShift & ((1u << (kExponentBits + kFractionBits)) - 1);
    const u32 sign = (bits >> (kExponentBits + kFractionBits + kShift) & 1) << 31;
    // As an f32 of the same fields, then rescaled by the difference of the biases, which also makes
    // subnormals right.
    constexpr float kRescale =
        kExponentBits == 8 ? 1.0f : __builtin_bit_cast(float, static_cast<u32>(254 - kBias) << 23);
    const float value = FromBits(magnitude << (23 - kFractionBits)) * kRescale;
    return IsSpecial(bits) ? 0.0f : FromBits(ToBits(value) | sign);
  }
  static s32 Exponent(u32 bits) {
    const u32 field = Field(bits);
    const s32 exponent = static_cast<s32>(field == 0 ? 1 : field) - kBias;
    return (field == 0 && Fraction(bits) == 0) || IsSpecial(bits) ? kZeroExponent : exponent;
  }
};
using F16Fields = Fields<5, 10>;
using Bf16Fields = Fields<8, 7>;
using Tf32Fields = Fields<8, 10, 13>;
using E4m3Fields = Fields<4, 3, 0, false>;
using E5m2Fields = Fields<5, 2>;

/// Values and exponents of `count` elements; true if any is infinite or NaN. `normalise`:
/// subnormals have the exponent of their value.
template <class F>
bool DecodeAll(const u32* bits, int count, bool normalise, float* values, s32* exponents) {
  u32 special = 0;
  for (int i = 0; i < count; ++i) {
    values[i] = F::Value(bits[i]);
    exponents[i] = normalise ? ExponentOfF32(values[i]) : F::Exponent(bits[i]);
    special |= F::IsSpecial(bits[i]) ? 1u : 0u;
  }
  return special != 0;
}
/// `as_f16`: 8-bit types are multiplied as f16, where subnormals of e4m3 are normal.
bool DecodeAll(TensorType type, const u32* bits, int count, bool as_f16, float* values,
               s32* exponents) {
  switch (type) {
    case TensorType::kF16:
      return DecodeAll<F16Fields>(bits, count, false, values, exponents);
    case TensorType::kBF16:
      return DecodeAll<Bf16Fields>(bits, count, false, values, exponents);
    case TensorType::kTF32:
      return DecodeAll<Tf32Fields>(bits, count, false, values, exponents);
    case TensorType::kE4M3:
      return DecodeAll<E4m3Fields>(bits, count, as_f16, values, exponents);
    case TensorType::kE5M2:
      return DecodeAll<E5m2Fields>(bits, count, false, values, exponents);
  }
  return false;
}

bool IsSpecial(TensorType type, u32 bits) {
  float value;
  s32 exponent;
  return DecodeAll(type, &bits, 1, false, &value, &exponent);
}
/// The value of any element, infinities and NaN included, for the rare outputs that have them among
/// their terms.
double PlainValue(TensorType type, u32 bits) {
  float value;
  s32 exponent;
  if (!DecodeAll(type, &bits, 1, false, &value, &exponent)) return static_cast<double>(value);
  if (type == TensorType::kE4M3) return static_cast<double>(FromBits(kNanF32));
  if (type == TensorType::kTF32) return static_cast<double>(FromBits(bits & 0xffffe000u));
  if (type == TensorType::kBF16) return static_cast<double>(FromBits(bits << 16));
  // e5m2 is the upper byte of an f16.
  return static_cast<double>(
      Fp16::Widen(static_cast<u16>(type == TensorType::kF16 ? bits : bits << 8)));
}

/// Eight columns at once. Vectors of the compiler, because its own vectoriser keeps arrays in
/// memory.
using F8 [[gnu::vector_size(32)]] = float;
using S8 [[gnu::vector_size(32)]] = s32;
using D8 [[gnu::vector_size(64)]] = double;
using L8 [[gnu::vector_size(64)]] = s64;
template <class Real>
using R8 = std::conditional_t<sizeof(Real) == 4, F8, D8>;

template <class To, class From>
[[gnu::always_inline]] inline To ConvertVector(const From& from) {
  if constexpr (std::is_same_v<To, From>) {
    return from;
  } else {
    return __builtin_convertvector(from, To);
  }
}

/// Columns of B, decoded.
struct Columns {
  F8 value[kMaxTensorK];
  S8 exponent[kMaxTensorK];
};
/// A row of A.
struct Row {
  const float* value;
  const s32* exponent;
};

/// How the terms of a product are grouped: the k of each block, one block after the other.
struct Blocks {
  int order[kMaxTensorK];
  int size = 0;
  int align_bits = kAlignBits;
  s32 kept = -1;                 ///< Bits of each f32 sum.
  bool accumulate_last = false;  ///< Start from zero and add the accumulator at the end.
};

/// acc[j] = acc[j] + sum over the listed k, in one alignment.
template <class Real>
void AddBlock(const Row& a, const Columns& b, const int* order, int count, const Blocks& blocks,
              float* accumulator) {
  F8 acc;
  __builtin_memcpy(&acc, accumulator, sizeof acc);
  const S8 acc_bits = BitCast<S8>(acc);
  const S8 field = acc_bits >> 23 & 0xff;
  S8 top = (field == 0 ? S8{} + 1 : field) - 127;
  top = (acc_bits & 0x7fffffff) == 0 ? S8{} + kZeroExponent : top;
  top = field == 255 ? S8{} + kInfiniteExponent : top;
  for (int i = 0; i < count; ++i) {
    const S8 exponent = a.exponent[order[i]] + b.exponent[order[i]];
    top = exponent > top ? exponent : top;
  }
  // Terms are scaled so that their unit is the last place kept. Where nothing but a tiny
  // accumulator is there, any scale will do that does not overflow: products have exponents of -300
  // at least, and -30 where Real is float. Infinity needs none: it stays.
  constexpr s32 kLowest = sizeof(Real) == 4 ? -90 : -400;
  const S8 infinite = top >= kInfiniteExponent;
  const S8 at_least = top > kLowest ? top : S8{} + kLowest;
  R8<Real> scale;
  if constexpr (sizeof(Real) == 4) {
    scale = BitCast<F8>(((blocks.align_bits - at_least + 127) << 23) & ~infinite);
  } else {
    const L8 bits = (ConvertVector<L8>(blocks.align_bits - at_least) + 1023) << 52;
    scale = BitCast<D8>(bits & ~ConvertVector<L8>(infinite));
  }
  const R8<Real> start = ConvertVector<R8<Real>>(BitCast<F8>(acc_bits & ~infinite));
  // Conversion to integer truncates. Terms are below 2^27: eight of them fit 32 bits.
  D8 sum = ConvertVector<D8>(ConvertVector<S8>(start * scale));
  for (int first = 0; first < count; first += 8) {
    const int end = count < first + 8 ? count : first + 8;
    S8 part{};
    for (int i = first; i < end; ++i) {
      const R8<Real> product =
          static_cast<Real>(a.value[order[i]]) * ConvertVector<R8<Real>>(b.value[order[i]]);
      part += ConvertVector<S8>(product * scale);
    }
    sum += ConvertVector<D8>(part);
  }
  // Back to f32, towards zero; beyond it, infinity.
  const L8 unit = (ConvertVector<L8>(at_least - blocks.align_bits) + 1023) << 52;
  const D8 value = sum * BitCast<D8>(unit & ~ConvertVector<L8>(infinite));
  const F8 nearest = ConvertVector<F8>(value);
  const D8 back = ConvertVector<D8>(nearest);
  const L8 too_large = ((value > 0.0) & (back > value)) | ((value < 0.0) & (back < value));
  const L8 in_range = (value < 0x1p128) & (value > -0x1p128);
  S8 bits = BitCast<S8>(nearest) + ConvertVector<S8>(too_large & in_range);
  bits = (bits & 0x7fffffff) == 0 ? S8{} : bits & blocks.kept;
  // No products, or a sum that has overflowed already: the accumulator stays.
  const S8 stays = infinite | (top < kLowest);
  bits = stays ? acc_bits : bits;
  bits = top == kZeroExponent ? S8{} : bits;
  __builtin_memcpy(accumulator, &bits, sizeof bits);
}

/// acc[j] = fma(a, b, ... fma(a, b, 0)) + addend[j]; a product of f16 values is exact in f32.
void AddChain(const Row& a, const Columns& b, int count, const float* addend, float* acc) {
  for (int j = 0; j < kColumns; ++j) {
    float sum = 0.0f;
    for (int k = 0; k < count; ++k) sum += a.value[k] * b.value[k][j];
    acc[j] = sum + addend[j];
  }
}

void FillBlocks(const TensorProduct& product, Blocks& blocks) {
  const bool fp8 = product.a == TensorType::kE4M3 || product.a == TensorType::kE5M2;
  if (fp8 && !product.warpgroup) {
    int at = 0;
    const int stored = product.sparse ? 8 : 4;
    for (int part = 0; part < 2; ++part) {
      for (int k = 0; k < product.k; ++k) {
        if (k % stored / (stored / 2) == part) blocks.order[at++] = k;
      }
    }
    blocks.size = product.k / 2;
    blocks.accumulate_last = true;
    return;
  }
  for (int k = 0; k < product.k; ++k) blocks.order[k] = k;
  const int dense = product.steps_of_4 ? 4 : product.a == TensorType::kTF32 ? 8 : fp8 ? 32 : 16;
  if (fp8) {
    blocks.align_bits = kAlignBitsShort;
    if (!product.half_result) blocks.kept = -(1 << (23 - kAlignBitsShort));
  }
  blocks.size = product.sparse ? 2 * dense : dense;
}

/// An output with an infinity or NaN among its terms: finite ones do not matter.
float SpecialOutput(const TensorProduct& product, const u32* a_row, const u32* b_column, float c) {
  double sum = static_cast<double>(c);
  for (int k = 0; k < product.k; ++k) {
    if (product.sparse && a_row[k] == TensorAbsent(product.a)) continue;
    sum += PlainValue(product.a, a_row[k]) * PlainValue(product.b, b_column[k]);
  }
  return Canonical(static_cast<float>(sum));
}
bool AnySpecial(TensorType type, const u32* bits, int count) {
  for (int i = 0; i < count; ++i) {
    if (IsSpecial(type, bits[i])) return true;
  }
  return false;
}

bool IsSpecialF32(float value) { return (ToBits(value) & 0x7f800000u) == 0x7f800000u; }

/// Replaces the outputs of a row that have infinities or NaN among their terms.
void FixSpecial(const TensorProduct& product, const u32* a_row, const u32* b_columns,
                const float* addend, float* acc) {
  const bool a_special = AnySpecial(product.a, a_row, product.k);
  for (int j = 0; j < kColumns; ++j) {
    const u32* const b_column = b_columns + j * product.k;
    if (!a_special && !IsSpecialF32(addend[j]) && !AnySpecial(product.b, b_column, product.k)) {
      continue;
    }
    // What is finite after all met the special element of B only with an absent one of A.
    const float sum = SpecialOutput(product, a_row, b_column, addend[j]);
    if (IsSpecialF32(sum)) acc[j] = sum;
  }
}

template <class Real>
void Multiply(const TensorProduct& product, const u32* a, const u32* b, const float* c, float* d) {
  const int size = product.k;
  Blocks blocks;
  FillBlocks(product, blocks);
  alignas(64) float a_values[kMaxTensorM * kMaxTensorK];
  alignas(64) s32 a_exponents[kMaxTensorM * kMaxTensorK];
  const bool a_special =
      DecodeAll(product.a, a, product.m * size, !product.warpgroup, a_values, a_exponents);
  for (int column = 0; column < product.n; column += kColumns) {
    alignas(64) u32 transposed[kMaxTensorK * kColumns];
    for (int j = 0; j < kColumns; ++j) {
      const u32* const from = b + (column + j) * size;
      for (int k = 0; k < size; ++k) transposed[k * kColumns + j] = from[k];
    }
    Columns columns;
    const bool b_special = DecodeAll(product.b, transposed, size * kColumns, !product.warpgroup,
                                     reinterpret_cast<float*>(columns.value),
                                     reinterpret_cast<s32*>(columns.exponent));
    for (int i = 0; i < product.m; ++i) {
      const Row row{a_values + i * size, a_exponents + i * size};
      const float* const addend = c + i * product.n + column;
      alignas(64) float acc[kColumns];
      bool c_special = false;
      for (int j = 0; j < kColumns; ++j) {
        const bool special = IsSpecialF32(addend[j]);
        c_special |= special;
        acc[j] = blocks.accumulate_last || special ? 0.0f : addend[j];
      }
      if (product.chain) {
        AddChain(row, columns, size, addend, acc);
      } else {
        for (int first = 0; first < size; first += blocks.size) {
          const int count = size - first < blocks.size ? size - first : blocks.size;
          AddBlock<Real>(row, columns, blocks.order + first, count, blocks, acc);
        }
        for (int j = 0; j < kColumns && blocks.accumulate_last; ++j) acc[j] += addend[j];
      }
      if (a_special || b_special || c_special) {
        FixSpecial(product, a + i * size, b + column * size, addend, acc);
      }
      __builtin_memcpy(d + i * product.n + column, acc, sizeof acc);
    }
  }
}

}  // namespace

void TensorMultiplyLevel(const TensorProduct& product, const u32* a, const u32* b, const float* c,
                         float* d) {
  // Products of these types do not leave the range of f32.
  const bool narrow = product.a != TensorType::kBF16 && product.a != TensorType::kTF32;
  if (narrow) {
    Multiply<float>(product, a, b, c, d);
  } else {
    Multiply<double>(product, a, b, c, d);
  }
}

void TensorMultiplyIntegerLevel(int m, int n, int k, bool saturate, const s32* a, const s32* b,
                                const s32* c, s32* d) {
  for (int column = 0; column < n; column += kColumns) {
    S8 columns[kMaxTensorK];
    for (int j = 0; j < kColumns; ++j) {
      for (int l = 0; l < k; ++l) columns[l][j] = b[(column + j) * k + l];
    }
    for (int i = 0; i < m; ++i) {
      // Products of 8-bit values: a few hundred of them fit 32 bits.
      S8 sum{};
      for (int l = 0; l < k; ++l) sum += a[i * k + l] * columns[l];
      for (int j = 0; j < kColumns; ++j) {
        s64 total = s64{sum[j]} + c[i * n + column + j];
        if (saturate) {
          total = total > kMax<s32> ? kMax<s32> : total < kMin<s32> ? kMin<s32> : total;
        }
        d[i * n + column + j] = static_cast<s32>(total);
      }
    }
  }
}

double FmaF64Level(double a, double b, double c) { return FmaF64<Round::kNearest>(a, b, c); }

}  // namespace assay::emu::inline ASSAY_EMU_LEVEL
