#include "validator/oracle/causes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>
#include <vector>

#include "validator/oracle/element.h"

namespace assay::oracle {
namespace {

// exp of more than this leaves f32; nothing near it leaves f16 by sums or products of few terms.
constexpr double kLargestExponent = 80;
constexpr double kNarrowRange = 6e4;
// Share of the bad elements that must lie where a cause predicts them.
constexpr double kMost = 0.95;
// A distribution is told from so many bad elements, of so many that differ from zero: one or two
// would fit any cause.
constexpr double kFewestBad = 4;
constexpr double kFewestNonzero = 6;
// Truncated operands shrink every term alike, by less than this.
constexpr double kRoundedFactor = 0x1p-7;

/// How a cause begins, and whether it blames rounding or the formula.
struct CauseRow {
  Blame blame;
  std::string_view head;
};
enum class Cause : std::uint8_t {
  kAllZeros,
  kSomeZeros,
  kScale,
  kNearScale,
  kRowScale,
  kSign,
  kTruncated,
  kTwice,
  kFewBits,
  kCancels,
  kEps,
  kApproximate,
  kNarrow,
  kShrink,
  kTruncatedSums
};
using enum Cause;
constexpr CauseRow kCauseRows[] = {
    {Blame::kFormula, "the output is mostly zeros"},
    {Blame::kFormula, "some elements are zero that should not be"},
    {Blame::kFormula, "every element is off by the same factor"},
    {Blame::kEither, "every element is off by about the same factor"},
    {Blame::kFormula, "the elements of the row are off by the same factor"},
    {Blame::kFormula, "the sign is wrong"},
    {Blame::kRounding, "the result is truncated"},
    {Blame::kRounding, "results are rounded twice"},
    {Blame::kRounding, "no result uses more than"},
    {Blame::kRounding, "rows whose mean is far above their deviation are off"},
    {Blame::kFormula, "only rows whose variance is not far above eps are off"},
    {Blame::kRounding, "an approximate function"},
    {Blame::kRounding, "errors have the size that arithmetic in"},
    {Blame::kRounding, "magnitudes shrink"},
    {Blame::kRounding, "additions that truncate"},
};
std::string_view Head(Cause cause) { return kCauseRows[static_cast<std::size_t>(cause)].head; }

/// "1.25"; next to one the distance from it, which six digits would not show.
std::string Factor(double factor) {
  const double off = factor - 1;
  if (std::fabs(off) >= 5e-4) return fmt::format("{:.6g}", factor);
  return fmt::format("1 {} {:.2g}", off < 0 ? '-' : '+', std::fabs(off));
}

/// One row of an input, as statistics see it.
struct InputRow {
  double largest = 0, mean = 0, variance = 0;
};

/// Rows of the float input that has a row for each of the output's: of the same shape, or with one
/// more axis that the op reduces. Empty where no input is like that.
std::vector<InputRow> RowsBehind(const ops::Instance& instance, const TensorMap& inputs,
                                 const OutputTruth& truth) {
  for (const ops::TensorSpec& spec : instance.op.inputs) {
    const auto found = inputs.find(spec.name);
    if (spec.is_scalar || found == inputs.end() || !IsFloat(found->second.dtype)) continue;
    const Tensor& tensor = found->second;
    if (tensor.shape.size() < 2 || tensor.elements == 0) continue;
    const Shape outer(tensor.shape.begin(), tensor.shape.end() - 1);
    if (tensor.shape != truth.shape && outer != truth.shape) continue;
    const std::int64_t columns = tensor.shape.back();
    std::vector<InputRow> rows(static_cast<std::size_t>(tensor.elements / columns));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      InputRow& row = rows[i];
      const std::int64_t start = static_cast<std::int64_t>(i) * columns;
      for (std::int64_t j = 0; j < columns; ++j) {
        const double value = tensor.At(start + j);
        row.largest = std::max(row.largest, std::fabs(value));
        row.mean += value / static_cast<double>(columns);
      }
      for (std::int64_t j = 0; j < columns; ++j) {
        const double off = tensor.At(start + j) - row.mean;
        row.variance += off * off / static_cast<double>(columns);
      }
    }
    return rows;
  }
  return {};
}

/// The op's eps; nothing where it has none.
std::optional<double> EpsOf(const ops::Instance& instance, const TensorMap& inputs) {
  for (const ops::TensorSpec& spec : instance.op.inputs) {
    if (!spec.is_scalar || spec.name.find("eps") == std::string::npos) continue;
    const auto found = inputs.find(spec.name);
    if (found != inputs.end() && found->second.elements > 0) return found->second.At(0);
  }
  return std::nullopt;
}

/// Normalisations: are bad elements where a missing eps, or a variance that cancels, puts them?
std::string CauseInNormalisation(const ops::Instance& instance, const TensorMap& inputs,
                                 const OutputTruth& truth, const Tensor& got,
                                 const ErrorShape& shape) {
  const auto eps = EpsOf(instance, inputs);
  if (!eps) return {};
  const std::vector<InputRow> rows = RowsBehind(instance, inputs, truth);
  if (rows.empty()) return {};
  const std::size_t columns = truth.value.size() / rows.size();
  const double unit = UnitRoundoff(truth.dtype);
  double bad = 0, tiny = 0, grown = 0, one_sided = 0, farthest = 0;
  const bool others = std::ranges::any_of(
      rows, [&](const InputRow& row) { return !(*eps > unit / 4 * row.variance); });
  for (std::size_t i = 0; i < truth.value.size(); ++i) {
    const double value = truth.value[i];
    const double result = got.At(static_cast<std::int64_t>(i));
    if (!std::isfinite(value) || !std::isfinite(truth.allowance[i]) ||
        std::fabs(result - value) <= truth.allowance[i])
      continue;
    const InputRow& row = rows[i / columns];
    bad += 1;
    // Without eps the row comes out larger by sqrt(1 + eps / variance).
    if (*eps > unit / 4 * row.variance) tiny += 1;
    if (!(std::fabs(result) < std::fabs(value))) grown += 1;
    if (row.mean * row.mean > 16 * row.variance) one_sided += 1;
    if (row.variance > 0)
      farthest = std::max(farthest, std::fabs(row.mean) / std::sqrt(row.variance));
  }
  if (bad == 0) return {};
  // E[x^2] - E[x]^2 is off by mean / deviation times what a deviation's own roundings do.
  const double cancelled = UnitRoundoff(instance.op.contract.accumulate) * 10 * (farthest + 1);
  if (one_sided >= kMost * bad && shape.effective_roundoff < cancelled) {
    return fmt::format("{}: the variance is computed as E[x^2] - E[x]^2, which cancels",
                       Head(kCancels));
  }
  // "Only" says something where there are other rows.
  if (tiny >= kMost * bad && grown > 0.5 * bad && others) {
    return fmt::format("{}, and they are too large: eps is missing, or smaller than the op's",
                       Head(kEps));
  }
  return {};
}

}  // namespace

Blame BlameOf(std::string_view cause) {
  const auto row = std::ranges::find_if(
      kCauseRows, [&](const CauseRow& each) { return cause.starts_with(each.head); });
  return row == std::end(kCauseRows) ? Blame::kEither : row->blame;
}

std::string CauseOfShrinking() {
  return fmt::format(
      "{}, as truncation instead of rounding to nearest makes them, somewhere on the way",
      Head(kShrink));
}

std::string CauseOfGrowth() {
  return fmt::format("{}, or partial sums in a type narrower than the contract",
                     Head(kTruncatedSums));
}

std::string CauseOfOverflow(const ops::Instance& instance, const TensorMap& inputs,
                            const OutputTruth& truth, const Tensor& got) {
  const std::vector<InputRow> rows = RowsBehind(instance, inputs, truth);
  if (rows.empty()) return {};
  const std::size_t columns = std::max<std::size_t>(1, truth.value.size() / rows.size());
  std::vector<bool> bad(rows.size());
  bool large = true;
  for (std::size_t i = 0; i < truth.value.size(); ++i) {
    if (!std::isfinite(truth.value[i])) continue;
    const double result = got.At(static_cast<std::int64_t>(i));
    if (std::isfinite(result)) continue;
    bad[i / columns] = true;
  }
  // A cause that says which rows fail is believed where no others do, and where there are others.
  const auto predicts = [&](const auto& may_fail) {
    std::size_t failed = 0, spared = 0, others = 0;
    for (std::size_t row = 0; row < rows.size(); ++row) {
      if (bad[row] && !may_fail(rows[row])) return false;
      if (bad[row]) ++failed;
      if (!bad[row] && may_fail(rows[row])) ++spared;
      if (!bad[row] && !may_fail(rows[row])) ++others;
    }
    return failed > spared && others > 0;
  };
  if (const auto eps = EpsOf(instance, inputs);
      eps && predicts([&](const InputRow& row) { return row.variance < *eps; }))
    return "a division by zero in rows without variance: eps is missing";
  for (std::size_t row = 0; row < rows.size(); ++row)
    large = large && (!bad[row] || rows[row].largest < kNarrowRange);
  if (large && predicts([](const InputRow& row) { return row.largest > kLargestExponent; })) {
    return "only rows with values beyond 80 overflow: exp of them does, where the row's maximum is "
           "not subtracted first";
  }
  return {};
}

std::string LikelyCause(const ops::Instance& instance, const TensorMap& inputs,
                        const OutputTruth& truth, const Tensor& got, const Groups& groups,
                        const ErrorShape& shape) {
  const ops::Contract& contract = instance.op.contract;
  if (shape.bad < 2) return {};
  if (shape.zeros > 0.5 && shape.zero_rows > 1 && shape.nonzero >= kFewestNonzero)
    return fmt::format("{}: it was not computed, or computed from zeroed data", Head(kAllZeros));
  if (shape.zero_elements == shape.bad || shape.zeros > 0.5) {
    return fmt::format("{}: they were skipped, or their contributions lost", Head(kSomeZeros));
  }
  if (!IsFloat(truth.dtype) || shape.bad < kFewestBad || shape.nonzero < kFewestNonzero) return {};
  const double unit = UnitRoundoff(truth.dtype);
  const double off = std::fabs(shape.scale - 1);
  if (off > 4 * unit && shape.scale > 0 && shape.scale_rest < std::max(4 * unit, 0.02 * off)) {
    if (shape.rows < 2) {
      return fmt::format("{}, {}: what they have in common (a sum, a mean, a scale) is wrong",
                         Head(kRowScale), Factor(shape.scale));
    }
    if (off < kRoundedFactor) {
      return fmt::format(
          "{}, {}: a constant or a scale is not exact, or operands are cut to fewer bits (TF32, "
          "bf16), which shrinks every term alike",
          Head(kNearScale), Factor(shape.scale));
    }
    return fmt::format(
        "{}, {}: a scale, or a sum that they are divided by, is missing, applied twice, or wrong",
        Head(kScale), Factor(shape.scale));
  }
  if (shape.scale < -0.5 && shape.scale_rest < 0.1) return std::string(Head(kSign));
  if (std::string cause = CauseInNormalisation(instance, inputs, truth, got, shape); !cause.empty())
    return cause;
  if (shape.truncated > kMost && groups.bias.MeanTowardZero() < 0) {
    return fmt::format("{} to the output's dtype instead of rounded to nearest", Head(kTruncated));
  }
  // Rounding twice goes either way.
  const bool one_way = shape.bad >= 6 && shape.shrunk > kMost;
  if (shape.largest_ulps <= 2.01 && shape.beyond < 0.6 && Precision(truth.dtype) <= 11 &&
      !one_way) {
    return fmt::format("{}, through an intermediate of {} or narrower", Head(kTwice),
                       Name(truth.dtype));
  }
  if (shape.bits > 0 && shape.bits <= Precision(truth.dtype) - 4 &&
      shape.bits + 4 <= shape.truth_bits) {
    return fmt::format("{} {} of the {} bits that {} has: {}", Head(kFewBits), shape.bits,
                       Precision(truth.dtype), Name(truth.dtype),
                       shape.shrunk > 0.95 ? "results are truncated to a narrower type"
                                           : "results are rounded twice, first to a narrower type");
  }
  if (!contract.approximate_functions && shape.effective_roundoff < UnitRoundoff(DType::kF16) / 8 &&
      shape.effective_roundoff > 2 * UnitRoundoff(contract.accumulate)) {
    return fmt::format("{} (__expf, __fdividef, fast-math), which the contract does not allow",
                       Head(kApproximate));
  }
  const double roundoff = shape.effective_roundoff;
  if (roundoff > 4 * UnitRoundoff(contract.accumulate) &&
      roundoff < 24 * UnitRoundoff(DType::kBF16)) {
    // How wide the narrow part is shows only roughly, where the output's own dtype suggests none.
    const std::string suspect =
        Precision(truth.dtype) <= 11                ? std::string(Name(truth.dtype))
        : roundoff > UnitRoundoff(DType::kBF16) / 3 ? "bf16 (or truncated TF32)"
        : roundoff > UnitRoundoff(DType::kF16) / 3  ? "f16 or TF32"
                                                    : "fewer bits (f16, or operands in TF32)";
    return fmt::format(
        "{} {} gives, not {}: an accumulator, an operand or an intermediate may be narrower than "
        "the contract",
        Head(kNarrow), suspect, Name(contract.accumulate));
  }
  return {};
}

}  // namespace assay::oracle
