// The products of semantics/matrix.h for floating-point elements, compiled once a level.
#include "validator/emu/handlers/tensor.h"

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

/// Sixteen rows at once. Vectors of the compiler, because its own vectoriser keeps arrays in
/// memory.
using F16 [[gnu::vector_size(64)]] = float;
using S16 [[gnu::vector_size(64)]] = s32;
using D16 [[gnu::vector_size(128)]] = double;
using L16 [[gnu::vector_size(128)]] = s64;
template <class Real>
using R16 = std::conditional_t<sizeof(Real) == 4, F16, D16>;

template <class To, class From>
[[gnu::always_inline]] inline To ConvertVector(const From& from) {
  if constexpr (std::is_same_v<To, From>) {
    return from;
  } else {
    return __builtin_convertvector(from, To);
  }
}

/// Sixteen rows of A, decoded, by columns.
struct Rows {
  F16 value[kMaxTensorK];
  S16 exponent[kMaxTensorK];
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

/// AddBlock for such accumulators and products (FitF32): the same bits, in fewer steps.
void AddBlockSafe(const Rows& a, const Column& b, const int* order, int count, const Blocks& blocks,
                  float* accumulator) {
  constexpr s32 kLowest = -90;
  F16 acc;
  __builtin_memcpy(&acc, accumulator, sizeof acc);
  const S16 acc_bits = BitCast<S16>(acc);
  const S16 field = acc_bits >> 23 & 0xff;
  S16 top = (field == 0 ? S16{} + 1 : field) - 127;
  top = (acc_bits & 0x7fffffff) == 0 ? S16{} + kZeroExponent : top;
  for (int i = 0; i < count; ++i) {
    const S16 exponent = a.exponent[order[i]] + b.exponent[order[i]];
    top = exponent > top ? exponent : top;
  }
  const S16 at_least = top > kLowest ? top : S16{} + kLowest;
  const F16 scale = BitCast<F16>((blocks.align_bits - at_least + 127) << 23);
  D16 sum{};
  S16 part = ConvertVector<S16>(acc * scale);
  for (int first = 0; first < count; first += 8) {
    const int end = count < first + 8 ? count : first + 8;
    for (int i = first; i < end; ++i)
      part += ConvertVector<S16>(a.value[order[i]] * b.value[order[i]] * scale);
    sum += ConvertVector<D16>(part);
    part = S16{};
  }
  const L16 unit = (ConvertVector<L16>(at_least - blocks.align_bits) + 1023) << 52;
  // The 24 bits of an f32 and no more. Subnormal sums have fewer: their unit is above 2^-149.
  constexpr s64 kBeyondF32 = (s64{1} << 29) - 1;
  const D16 value = BitCast<D16>(BitCast<L16>(sum * BitCast<D16>(unit)) & ~kBeyondF32);
  S16 bits = BitCast<S16>(ConvertVector<F16>(value)) & blocks.kept;
  bits = top < kLowest ? acc_bits : bits;
  bits = top == kZeroExponent ? S16{} : bits;
  __builtin_memcpy(accumulator, &bits, sizeof bits);
}

/// acc[i] = acc[i] + sum over the listed k, in one alignment.
template <class Real>
void AddBlock(const Rows& a, const Column& b, const int* order, int count, const Blocks& blocks,
              float* accumulator) {
  F16 acc;
  __builtin_memcpy(&acc, accumulator, sizeof acc);
  const S16 acc_bits = BitCast<S16>(acc);
  const S16 field = acc_bits >> 23 & 0xff;
  S16 top = (field == 0 ? S16{} + 1 : field) - 127;
  top = (acc_bits & 0x7fffffff) == 0 ? S16{} + kZeroExponent : top;
  top = field == 255 ? S16{} + kInfiniteExponent : top;
  for (int i = 0; i < count; ++i) {
    const S16 exponent = a.exponent[order[i]] + b.exponent[order[i]];
    top = exponent > top ? exponent : top;
  }
  // Terms are scaled so that their unit is the last place kept. Where nothing but a tiny
  // accumulator is there, any scale will do that does not overflow: products have exponents of -300
  // at least, and -30 where Real is float. Infinity needs none: it stays.
  constexpr s32 kLowest = sizeof(Real) == 4 ? -90 : -400;
  const S16 infinite = top >= kInfiniteExponent;
  const S16 at_least = top > kLowest ? top : S16{} + kLowest;
  R16<Real> scale;
  if constexpr (sizeof(Real) == 4) {
    scale = BitCast<F16>(((blocks.align_bits - at_least + 127) << 23) & ~infinite);
  } else {
    const L16 bits = (ConvertVector<L16>(blocks.align_bits - at_least) + 1023) << 52;
    scale = BitCast<D16>(bits & ~ConvertVector<L16>(infinite));
  }
  const R16<Real> start = ConvertVector<R16<Real>>(BitCast<F16>(acc_bits & ~infinite));
  // Conversion to integer truncates. Terms are below 2^27: eight of them fit 32 bits.
  D16 sum = ConvertVector<D16>(ConvertVector<S16>(start * scale));
  for (int first = 0; first < count; first += 8) {
    const int end = count < first + 8 ? count : first + 8;
    S16 part{};
    for (int i = first; i < end; ++i) {
      const R16<Real> product =
          ConvertVector<R16<Real>>(a.value[order[i]]) * static_cast<Real>(b.value[order[i]]);
      part += ConvertVector<S16>(product * scale);
    }
    sum += ConvertVector<D16>(part);
  }
  // Back to f32, towards zero; beyond it, infinity.
  const L16 unit = (ConvertVector<L16>(at_least - blocks.align_bits) + 1023) << 52;
  const D16 value = sum * BitCast<D16>(unit & ~ConvertVector<L16>(infinite));
  const F16 nearest = ConvertVector<F16>(value);
  const D16 back = ConvertVector<D16>(nearest);
  const L16 too_large = ((value > 0.0) & (back > value)) | ((value < 0.0) & (back < value));
  const L16 in_range = (value < 0x1p128) & (value > -0x1p128);
  S16 bits = BitCast<S16>(nearest) + ConvertVector<S16>(too_large & in_range);
  bits = (bits & 0x7fffffff) == 0 ? S16{} : bits & blocks.kept;
  // No products, or a sum that has overflowed already: the accumulator stays.
  const S16 stays = infinite | (top < kLowest);
  bits = stays ? acc_bits : bits;
  bits = top == kZeroExponent ? S16{} : bits;
  __builtin_memcpy(accumulator, &bits, sizeof bits);
}

/// acc[i] = fma(a, b, ... fma(a, b, 0)) + addend[i]; a product of f16 values is exact in f32.
void AddChain(const Rows& a, const Column& b, int count, const float* addend, float* acc) {
  F16 sum{};
  for (int k = 0; k < count; ++k) sum += a.value[k] * b.value[k];
  for (int i = 0; i < kRows; ++i) acc[i] = sum[i] + addend[i];
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
      for (int k = 0; k < size; ++k) {
        for (int i = 0; i < kRows; ++i) {
          raw[k * kRows + i] = i < rows ? a[k * product.m + first_row + i] : 0;
        }
      }
      block = raw;
    }
    Rows a_rows;
    const bool a_special =
        DecodeAll(product.a, block, size * kRows, !product.warpgroup,
                  reinterpret_cast<float*>(a_rows.value), reinterpret_cast<s32*>(a_rows.exponent));
    const bool fit_f32 =
        kNarrow ||
        FitF32(RangeOf(reinterpret_cast<const s32*>(a_rows.exponent), size * kRows), b_range);
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
