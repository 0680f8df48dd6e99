#include "validator/oracle/causes.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "validator/oracle/element.h"

namespace assay::oracle {
namespace {

// An honest kernel's error is some way below `typical`, so an observed one of a narrower type is,
// too.
constexpr double kTypicalOverReal = 3;
// exp of more than this leaves f32; nothing near it leaves f16 by sums or products of few terms.
constexpr double kLargestExponent = 80;
constexpr double kNarrowRange = 6e4;
// Share of the bad elements that must lie where a cause predicts them.
constexpr double kMost = 0.95;

// Fewer results may be short by chance.
constexpr int kFewestForBits = 24;

/// Significant bits of a finite number, the trailing zeros left out.
int BitsOf(double value) {
  if (value == 0) return 0;
  constexpr std::uint64_t kHidden = std::uint64_t{1} << 52;
  const std::uint64_t significand = (std::bit_cast<std::uint64_t>(value) & (kHidden - 1)) | kHidden;
  return 53 - std::countr_zero(significand);
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
    return "rows whose mean is far above their deviation are off: the variance is computed as "
           "E[x^2] - E[x]^2, which cancels";
  }
  if (tiny >= kMost * bad && grown > 0.5 * bad) {
    return "only rows whose variance is not far above eps are off, and they are too large: eps is "
           "missing, or smaller than the op's";
  }
  return {};
}

}  // namespace

ErrorShape ShapeOf(const ops::Contract& contract, const OutputTruth& truth, const Tensor& got) {
  ErrorShape shape;
  double beyond = 0, zeros = 0, shrunk = 0, constrained = 0;
  int most_bits = 0, tellable = 0;
  double got_truth = 0, truth2 = 0, error2 = 0, typical2 = 0;
  for (std::size_t i = 0; i < truth.value.size(); ++i) {
    const double value = truth.value[i];
    const double result = got.At(static_cast<std::int64_t>(i));
    if (!std::isfinite(value) || !std::isfinite(result) || !std::isfinite(truth.allowance[i]))
      continue;
    constrained += 1;
    const double error = result - value;
    if (std::fabs(error) > truth.allowance[i]) {
      beyond += 1;
      if (std::fabs(result) < std::fabs(value)) shrunk += 1;
      if (result == 0 && value != 0) zeros += 1;
      const double excess =
          std::max(0.0, std::fabs(error) - std::fabs(Rounded(truth.dtype, value) - value));
      error2 += excess * excess;
      typical2 += truth.typical[i] * truth.typical[i];
    }
    most_bits = std::max(most_bits, BitsOf(result));
    if (result != 0) ++tellable;
    got_truth += result * value;
    truth2 += value * value;
    if (IsFloat(truth.dtype)) {
      const double off =
          std::fabs(result - Rounded(truth.dtype, value)) / UlpAt(truth.dtype, value);
      shape.largest_ulps = std::max(shape.largest_ulps, off);
    }
  }
  if (constrained == 0) return shape;
  if (tellable >= kFewestForBits) shape.bits = most_bits;
  shape.beyond = beyond / constrained;
  shape.zeros = zeros / constrained;
  shape.shrunk = beyond > 0 ? shrunk / beyond : 0;
  if (truth2 > 0) {
    shape.scale = got_truth / truth2;
    double rest = 0, got2 = 0;
    for (std::size_t i = 0; i < truth.value.size(); ++i) {
      const double result = got.At(static_cast<std::int64_t>(i));
      const double value = truth.value[i];
      if (!std::isfinite(value) || !std::isfinite(result) || !std::isfinite(truth.allowance[i]))
        continue;
      rest += (result - shape.scale * value) * (result - shape.scale * value);
      got2 += result * result;
    }
    shape.scale_rest = got2 > 0 ? std::sqrt(rest / got2) : 1;
  }
  if (typical2 > 0) {
    shape.effective_roundoff =
        kTypicalOverReal * UnitRoundoff(contract.accumulate) * std::sqrt(error2 / typical2);
  }
  return shape;
}

std::string CauseOfOverflow(const ops::Instance& instance, const TensorMap& inputs,
                            const OutputTruth& truth, const Tensor& got) {
  const std::vector<InputRow> rows = RowsBehind(instance, inputs, truth);
  if (const auto eps = EpsOf(instance, inputs); eps && !rows.empty()) {
    const std::size_t columns = truth.value.size() / rows.size();
    bool constant = true;
    for (std::size_t i = 0; i < truth.value.size(); ++i) {
      if (std::isfinite(truth.value[i]) && !std::isfinite(got.At(static_cast<std::int64_t>(i))))
        constant = constant && rows[i / columns].variance < *eps;
    }
    if (constant) return "a division by zero in rows without variance: eps is missing";
  }
  bool exponents = !rows.empty();
  const std::size_t columns =
      rows.empty() ? 1 : std::max<std::size_t>(1, truth.value.size() / rows.size());
  for (std::size_t i = 0; exponents && i < truth.value.size(); ++i) {
    if (!std::isfinite(truth.value[i]) || std::isfinite(got.At(static_cast<std::int64_t>(i))))
      continue;
    const double largest = rows[i / columns].largest;
    exponents = largest > kLargestExponent && largest < kNarrowRange;
  }
  if (exponents) {
    return "only rows with values beyond 80 overflow: exp of them does, where the row's maximum is "
           "not subtracted first";
  }
  return "overflow of an intermediate: narrower than the contract's accumulator, or exp without "
         "the "
         "maximum subtracted first";
}

std::string LikelyCause(const ops::Instance& instance, const TensorMap& inputs,
                        const OutputTruth& truth, const Tensor& got, const Groups& groups,
                        const ErrorShape& shape) {
  const ops::Contract& contract = instance.op.contract;
  if (shape.beyond == 0) return {};
  const bool is_float = IsFloat(truth.dtype);
  if (shape.zeros > 0.5 || (shape.zeros > 0 && shape.zeros == shape.beyond)) {
    return shape.zeros > 0.5
               ? "the output is mostly zeros: it was not computed, or computed from zeroed data"
               : "some elements are zero that should not be: they were skipped, or their "
                 "contributions lost";
  }
  if (!is_float) return {};
  const double unit = UnitRoundoff(truth.dtype);
  if (std::fabs(shape.scale - 1) > 4 * unit &&
      shape.scale_rest < std::max(4 * unit, 0.02 * std::fabs(shape.scale - 1))) {
    return fmt::format(
        "every element is off by the same factor, {:.6g}: a scale is missing, applied twice, or "
        "wrong",
        shape.scale);
  }
  if (shape.scale < -0.5 && shape.scale_rest < 0.1) return "the sign is wrong";
  if (shape.largest_ulps <= 1.01 && groups.bias.MeanTowardZero() < -0.3) {
    return "the result is truncated to the output's dtype instead of rounded to nearest";
  }
  if (shape.largest_ulps <= 2.01 && shape.beyond < 0.6) {
    return fmt::format("results are rounded twice, through an intermediate of {} or narrower",
                       Name(truth.dtype));
  }
  if (shape.bits > 0 && shape.bits <= Precision(truth.dtype) - 4) {
    return fmt::format("no result uses more than {} of the {} bits that {} has: {}", shape.bits,
                       Precision(truth.dtype), Name(truth.dtype),
                       shape.shrunk > 0.95 ? "results are truncated to a narrower type"
                                           : "results are rounded twice, first to a narrower type");
  }
  if (std::string cause = CauseInNormalisation(instance, inputs, truth, got, shape); !cause.empty())
    return cause;
  if (!contract.approximate_functions && shape.effective_roundoff < UnitRoundoff(DType::kF16) / 8 &&
      shape.effective_roundoff > 2 * UnitRoundoff(contract.accumulate)) {
    return "an approximate function (__expf, __fdividef, fast-math), which the contract does not "
           "allow";
  }
  const double roundoff = shape.effective_roundoff;
  if (roundoff > 4 * UnitRoundoff(contract.accumulate) &&
      roundoff < 24 * UnitRoundoff(DType::kBF16)) {
    // How wide the narrow part is shows only roughly, where the output's own dtype suggests none.
    const std::string suspect = Precision(truth.dtype) <= 11 ? std::string(Name(truth.dtype))
                                : roundoff > UnitRoundoff(DType::kBF16) / 3 ? "bf16"
                                : roundoff > UnitRoundoff(DType::kF16) / 3
                                    ? "f16 or TF32"
                                    : "fewer bits (f16, or operands in TF32)";
    return fmt::format(
        "errors have the size that arithmetic in {} gives, not {}: an accumulator or an "
        "intermediate is narrower than the contract",
        suspect, Name(contract.accumulate));
  }
  return {};
}

}  // namespace assay::oracle
