// The products of semantics/matrix.h for floating-point elements, compiled once a level.
#include "validator/emu/handlers/tensor.h"

#include <utility>

#include "validator/emu/handlers/tensor_elements.h"
#include "validator/emu/semantics/floating.h"
#include "validator/emu/semantics/matrix.h"

namespace assay::emu::inline ASSAY_EMU_LEVEL {
namespace {

/// Bits kept below the largest exponent of a block; for wgmma on 8-bit types, where sums keep no
/// more than that either.
constexpr int kAlignBits = 25;
constexpr int kAlignBitsShort = 13;
/// Rows worked on together.
constexpr int kRows = 16;

// Vectors of the compiler, because its own vectoriser keeps arrays in memory; and none wider than the level's
// registers, for the compiler takes those apart in memory as well.
#if defined(__AVX512F__)
constexpr int kWide = 16;
#elif defined(__AVX2__)
constexpr int kWide = 8;
#else
constexpr int kWide = 4;
#endif
/// Rows that are worked on in double: as many as a register holds, but for AVX-512, where the compiler converts the
/// two halves of a register best by itself.
constexpr int kPart = kWide == 16 ? kWide : kWide / 2;
constexpr int kParts = kWide / kPart;

template <int kLanes>
struct VectorOf {
  typedef float F __attribute__((vector_size(4 * kLanes)));
  typedef s32 S __attribute__((vector_size(4 * kLanes)));
  typedef double D __attribute__((vector_size(8 * kLanes)));
  typedef s64 L __attribute__((vector_size(8 * kLanes)));
};
using F = VectorOf<kWide>::F;
using S = VectorOf<kWide>::S;
using PartF = VectorOf<kPart>::F;
using PartS = VectorOf<kPart>::S;
using PartD = VectorOf<kPart>::D;
using PartL = VectorOf<kPart>::L;

template <class To, class From>
[[gnu::always_inline]] inline To ConvertVector(const From& from) {
  if constexpr (std::is_same_v<To, From>) {
    return from;
  } else {
    return __builtin_convertvector(from, To);
  }
}
template <class Vector>
[[gnu::always_inline]] inline Vector LoadVector(const void* at) {
  Vector vector;
  __builtin_memcpy(&vector, at, sizeof vector);
  return vector;
}
/// Part `kWhich` of a vector, and a vector of its parts.
template <int kWhich>
[[gnu::always_inline]] inline PartS PartOf(const S& whole) {
  return [&]<int... kLane>(std::integer_sequence<int, kLane...>) {
    return __builtin_shufflevector(whole, whole, (kWhich * kPart + kLane)...);
  }(std::make_integer_sequence<int, kPart>());
}
[[gnu::always_inline]] inline S Joined(const PartS& low, const PartS& high) {
  return [&]<int... kLane>(std::integer_sequence<int, kLane...>) {
    return __builtin_shufflevector(low, high, kLane...);
  }(std::make_integer_sequence<int, kWide>());
}

/// Sixteen rows of A, decoded, by columns.
struct Rows {
  alignas(64) float value[kMaxTensorK][kRows];
  alignas(64) s32 exponent[kMaxTensorK][kRows];
};
/// A column of B.
struct Column {
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

/// Accumulators below 2^kSafeExponent, and products of types whose Real is float, stay far from the
/// limits of f32.
constexpr s32 kSafeExponent = 100;

/// The exponents of accumulators, subnormal ones and zeros included.
template <class Integers>
[[gnu::always_inline]] inline Integers TopOf(const Integers& bits) {
  const Integers field = bits >> 23 & 0xff;
  const Integers top = (field == 0 ? Integers{} + 1 : field) - 127;
  return (bits & 0x7fffffff) == 0 ? Integers{} + kZeroExponent : top;
}
template <class Integers>
[[gnu::always_inline]] inline Integers TopOf(const Integers& least, const Rows& a, const Column& b,
                                             const int* order, int count, int row) {
  Integers top = least;
  for (int i = 0; i < count; ++i) {
    const Integers exponent =
        LoadVector<Integers>(a.exponent[order[i]] + row) + b.exponent[order[i]];
    top = exponent > top ? exponent : top;
  }
  return top;
}

/// AddBlock for such accumulators and products (FitF32): the same bits, in fewer steps.
void AddBlockSafe(const Rows& a, const Column& b, const int* order, int count, const Blocks& blocks,
                  float* accumulator) {
  constexpr s32 kLowest = -90;
  for (int row = 0; row < kRows; row += kWide) {
    const F acc = LoadVector<F>(accumulator + row);
    const S acc_bits = BitCast<S>(acc);
    const S top = TopOf(TopOf(acc_bits), a, b, order, count, row);
    const S at_least = top > kLowest ? top : S{} + kLowest;
    const F scale = BitCast<F>((blocks.align_bits - at_least + 127) << 23);
    PartD low{}, high{};  // One part alone is the lower one.
    S part = ConvertVector<S>(acc * scale);
    for (int first = 0; first < count; first += 8) {
      const int end = count < first + 8 ? count : first + 8;
      for (int i = first; i < end; ++i) {
        const F value = LoadVector<F>(a.value[order[i]] + row);
        part += ConvertVector<S>(value * b.value[order[i]] * scale);
      }
      low += ConvertVector<PartD>(PartOf<0>(part));
      if constexpr (kParts > 1) high += ConvertVector<PartD>(PartOf<1>(part));
      part = S{};
    }
    const S last_place = at_least - blocks.align_bits;
    const auto rounded = [](const PartD& sum, const PartS& place) {
      const PartL unit = (ConvertVector<PartL>(place) + 1023) << 52;
      // The 24 bits of an f32 and no more. Subnormal sums have fewer: their unit is above 2^-149.
      constexpr s64 kBeyondF32 = (s64{1} << 29) - 1;
      const PartD value = BitCast<PartD>(BitCast<PartL>(sum * BitCast<PartD>(unit)) & ~kBeyondF32);
      return BitCast<PartS>(ConvertVector<PartF>(value));
    };
    S bits;
    if constexpr (kParts > 1) {
      bits = Joined(rounded(low, PartOf<0>(last_place)), rounded(high, PartOf<1>(last_place)));
    } else {
      const PartS whole = rounded(low, PartOf<0>(last_place));
      __builtin_memcpy(&bits, &whole, sizeof whole);
    }
    bits &= blocks.kept;
    bits = top < kLowest ? acc_bits : bits;
    bits = top == kZeroExponent ? S{} : bits;
    __builtin_memcpy(accumulator + row, &bits, sizeof bits);
  }
}

/// acc[i] = acc[i] + sum over the listed k, in one alignment.
template <class Real>
void AddBlock(const Rows& a, const Column& b, const int* order, int count, const Blocks& blocks,
              float* accumulator) {
  using RealVector = std::conditional_t<sizeof(Real) == 4, PartF, PartD>;
  for (int row = 0; row < kRows; row += kPart) {
    const PartF acc = LoadVector<PartF>(accumulator + row);
    const PartS acc_bits = BitCast<PartS>(acc);
    PartS top = TopOf(acc_bits);
    top = (acc_bits >> 23 & 0xff) == 255 ? PartS{} + kInfiniteExponent : top;
    top = TopOf(top, a, b, order, count, row);
    // Terms are scaled so that their unit is the last place kept. Where nothing but a tiny
    // accumulator is there, any scale will do that does not overflow: products have exponents of -300
    // at least, and -30 where Real is float. Infinity needs none: it stays.
    constexpr s32 kLowest = sizeof(Real) == 4 ? -90 : -400;
    const PartS infinite = top >= kInfiniteExponent;
    const PartS at_least = top > kLowest ? top : PartS{} + kLowest;
    RealVector scale;
    if constexpr (sizeof(Real) == 4) {
      scale = BitCast<PartF>(((blocks.align_bits - at_least + 127) << 23) & ~infinite);
    } else {
      const PartL bits = (ConvertVector<PartL>(blocks.align_bits - at_least) + 1023) << 52;
      scale = BitCast<PartD>(bits & ~ConvertVector<PartL>(infinite));
    }
    const RealVector start = ConvertVector<RealVector>(BitCast<PartF>(acc_bits & ~infinite));
    // Conversion to integer truncates. Terms are below 2^27: eight of them fit 32 bits.
    PartD sum = ConvertVector<PartD>(ConvertVector<PartS>(start * scale));
    for (int first = 0; first < count; first += 8) {
      const int end = count < first + 8 ? count : first + 8;
      PartS part{};
      for (int i = first; i < end; ++i) {
        const RealVector value =
            ConvertVector<RealVector>(LoadVector<PartF>(a.value[order[i]] + row));
        part += ConvertVector<PartS>(value * static_cast<Real>(b.value[order[i]]) * scale);
      }
      sum += ConvertVector<PartD>(part);
    }
    // Back to f32, towards zero; beyond it, infinity.
    const PartL unit = (ConvertVector<PartL>(at_least - blocks.align_bits) + 1023) << 52;
    const PartD value = sum * BitCast<PartD>(unit & ~ConvertVector<PartL>(infinite));
    const PartF nearest = ConvertVector<PartF>(value);
    const PartD back = ConvertVector<PartD>(nearest);
    const PartL too_large = ((value > 0.0) & (back > value)) | ((value < 0.0) & (back < value));
    const PartL in_range = (value < 0x1p128) & (value > -0x1p128);
    PartS bits = BitCast<PartS>(nearest) + ConvertVector<PartS>(too_large & in_range);
    bits = (bits & 0x7fffffff) == 0 ? PartS{} : bits & blocks.kept;
    // No products, or a sum that has overflowed already: the accumulator stays.
    const PartS stays = infinite | (top < kLowest);
    bits = stays ? acc_bits : bits;
    bits = top == kZeroExponent ? PartS{} : bits;
    __builtin_memcpy(accumulator + row, &bits, sizeof bits);
  }
}

/// acc[i] = fma(a, b, ... fma(a, b, 0)) + addend[i]; a product of f16 values is exact in f32.
void AddChain(const Rows& a, const Column& b, int count, const float* addend, float* acc) {
  for (int row = 0; row < kRows; row += kWide) {
    F sum{};
    for (int k = 0; k < count; ++k) sum += LoadVector<F>(a.value[k] + row) * b.value[k];
    for (int i = 0; i < kWide; ++i) acc[row + i] = sum[i] + addend[row + i];
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

/// An output with an infinity or NaN among its terms: finite ones do not matter. A's row is `m`
/// apart.
float SpecialOutput(const TensorProduct& product, const u32* a_row, const u32* b_column, float c) {
  double sum = static_cast<double>(c);
  for (int k = 0; k < product.k; ++k) {
    const u32 a = a_row[k * product.m];
    if (product.sparse && a == TensorAbsent(product.a)) continue;
    sum += PlainValue(product.a, a) * PlainValue(product.b, b_column[k]);
  }
  return Canonical(static_cast<float>(sum));
}
bool AnySpecial(TensorType type, const u32* bits, int count, int stride) {
  for (int i = 0; i < count; ++i) {
    if (IsSpecial(type, bits[i * stride])) return true;
  }
  return false;
}
bool IsSpecialF32(float value) { return (ToBits(value) & 0x7f800000u) == 0x7f800000u; }

/// Replaces those of `rows` outputs of a column that have infinities or NaN among their terms.
void FixSpecial(const TensorProduct& product, const u32* a_rows, const u32* b_column, int rows,
                const float* addend, float* acc) {
  const bool b_special = AnySpecial(product.b, b_column, product.k, 1);
  for (int i = 0; i < rows; ++i) {
    if (!b_special && !IsSpecialF32(addend[i]) &&
        !AnySpecial(product.a, a_rows + i, product.k, product.m)) {
      continue;
    }
    // What is finite after all met the special element of B only with an absent one of A.
    const float sum = SpecialOutput(product, a_rows + i, b_column, addend[i]);
    if (IsSpecialF32(sum)) acc[i] = sum;
  }
}

/// The exponents of the elements that are not zero.
struct Range {
  s32 least = kInfiniteExponent;
  s32 greatest = kZeroExponent;
};
Range RangeOf(const s32* exponents, int count) {
  Range range;
  for (int i = 0; i < count; ++i) {
    const s32 exponent = exponents[i];
    range.greatest = exponent > range.greatest ? exponent : range.greatest;
    const s32 low = exponent == kZeroExponent ? kInfiniteExponent : exponent;
    range.least = low < range.least ? low : range.least;
  }
  return range;
}
/// Are all products of such elements exact in f32 and as far from its limits as AddBlockSafe needs?
/// Fractions have 11 bits at most; where a factor is subnormal, a product may be 2^-10 times what its
/// exponent says.
bool FitF32(const Range& a, const Range& b) {
  return a.least + b.least >= -90 && a.greatest + b.greatest <= 90;
}

/// `rows` outputs of one column. `fit_f32`: its products do.
template <class Real>
void MultiplyColumn(const TensorProduct& product, const Blocks& blocks, const Rows& a,
                    const Column& b, bool fit_f32, int rows, const float* c, bool& c_special,
                    float* acc) {
  alignas(64) float addend[kRows] = {};
  __builtin_memcpy(addend, c, static_cast<std::size_t>(rows) * sizeof(float));
  u32 unsafe = 0;
  for (int i = 0; i < kRows; ++i) {
    unsafe |= (ToBits(addend[i]) & 0x7fffffffu) >= static_cast<u32>(kSafeExponent + 127) << 23;
    acc[i] = addend[i];
  }
  if (unsafe != 0) {
    for (int i = 0; i < kRows; ++i) {
      const bool special = IsSpecialF32(addend[i]);
      c_special |= special;
      acc[i] = special ? 0.0f : addend[i];
    }
  }
  if (blocks.accumulate_last) __builtin_memset(acc, 0, sizeof(float) * kRows);
  if (product.chain) {
    AddChain(a, b, product.k, addend, acc);
    return;
  }
  for (int first = 0; first < product.k; first += blocks.size) {
    const int count = product.k - first < blocks.size ? product.k - first : blocks.size;
    if (fit_f32 && unsafe == 0) {
      AddBlockSafe(a, b, blocks.order + first, count, blocks, acc);
    } else {
      AddBlock<Real>(a, b, blocks.order + first, count, blocks, acc);
    }
  }
  for (int i = 0; i < kRows && blocks.accumulate_last; ++i) acc[i] += addend[i];
}

template <class Real>
void Multiply(const TensorProduct& product, const u32* a, const u32* b, const float* c, float* d) {
  const int size = product.k;
  Blocks blocks;
  FillBlocks(product, blocks);
  alignas(64) float b_values[kMaxTensorN * kMaxTensorK];
  alignas(64) s32 b_exponents[kMaxTensorN * kMaxTensorK];
  const bool b_special =
      DecodeAll(product.b, b, product.n * size, !product.warpgroup, b_values, b_exponents);
  // Types whose Real is float always fit.
  constexpr bool kNarrow = sizeof(Real) == 4;
  const Range b_range = kNarrow ? Range{} : RangeOf(b_exponents, product.n * size);
  for (int first_row = 0; first_row < product.m; first_row += kRows) {
    const int rows = product.m - first_row < kRows ? product.m - first_row : kRows;
    alignas(64) u32 raw[kMaxTensorK * kRows];
    const u32* block = a;
    if (product.m != kRows) {
      for (int i = 0; i < size * kRows; ++i) {
        const int row = i % kRows;
        raw[i] = row < rows ? a[i / kRows * product.m + first_row + row] : 0;
      }
      block = raw;
    }
    Rows a_rows;
    const bool a_special = DecodeAll(product.a, block, size * kRows, !product.warpgroup,
                                     a_rows.value[0], a_rows.exponent[0]);
    const bool fit_f32 = kNarrow || FitF32(RangeOf(a_rows.exponent[0], size * kRows), b_range);
    for (int j = 0; j < product.n; ++j) {
      const Column column{b_values + j * size, b_exponents + j * size};
      const float* const addend = c + j * product.m + first_row;
      alignas(64) float acc[kRows];
      bool special = a_special || b_special;
      MultiplyColumn<Real>(product, blocks, a_rows, column, fit_f32, rows, addend, special, acc);
      if (special) FixSpecial(product, a + first_row, b + j * size, rows, addend, acc);
      __builtin_memcpy(d + j * product.m + first_row, acc,
                       static_cast<std::size_t>(rows) * sizeof(float));
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
  for (int j = 0; j < n; ++j) {
    // Products of 8-bit values: a few hundred of them fit 32 bits.
    alignas(64) s32 sum[kMaxTensorM] = {};
    for (int l = 0; l < k; ++l) {
      const s32 factor = b[j * k + l];
      for (int i = 0; i < m; ++i) sum[i] += a[l * m + i] * factor;
    }
    for (int i = 0; i < m; ++i) {
      s64 total = s64{sum[i]} + c[j * m + i];
      if (saturate) {
        total = total > kMax<s32> ? kMax<s32> : total < kMin<s32> ? kMin<s32> : total;
      }
      d[j * m + i] = static_cast<s32>(total);
    }
  }
}

void TensorMultiplyF64Level(int m, int n, int k, const double* a, const double* b, const double* c,
                            double* d) {
  for (int j = 0; j < n; ++j) {
    alignas(64) double sum[kMaxTensorM];
    for (int i = 0; i < m; ++i) sum[i] = c[j * m + i];
    for (int l = 0; l < k; ++l) {
      const double factor = b[j * k + l];
      for (int i = 0; i < m; ++i) {
        sum[i] = FmaF64<Round::kNearest>(a[l * m + i], factor, sum[i]);
      }
    }
    for (int i = 0; i < m; ++i) d[j * m + i] = sum[i];
  }
}

}  // namespace assay::emu::inline ASSAY_EMU_LEVEL
