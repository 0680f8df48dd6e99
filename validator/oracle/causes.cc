#include "validator/oracle/causes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "validator/oracle/element.h"

namespace assay::oracle {
namespace {

// An honest kernel's error is some way below `typical`, so an observed one of a narrower type is,
// too.
constexpr double kTypicalOverReal = 3;

}  // namespace

ErrorShape ShapeOf(const ops::Contract& contract, const OutputTruth& truth, const Tensor& got) {
  ErrorShape shape;
  double beyond = 0, zeros = 0, shrunk = 0, constrained = 0;
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
    got_truth += result * value;
    truth2 += value * value;
    if (IsFloat(truth.dtype)) {
      const double off =
          std::fabs(result - Rounded(truth.dtype, value)) / UlpAt(truth.dtype, value);
      shape.largest_ulps = std::max(shape.largest_ulps, off);
    }
  }
  if (constrained == 0) return shape;
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

std::string LikelyCause(const ops::Contract& contract, const OutputTruth& truth,
                        const Groups& groups, const ErrorShape& shape) {
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
  // Between half of TF32's and some times bf16's; which of the two it is shows only where the
  // output's own dtype suggests one.
  const double roundoff = shape.effective_roundoff;
  if (Precision(contract.accumulate) > 11 && roundoff > 0.3 * UnitRoundoff(DType::kF16) &&
      roundoff < 24 * UnitRoundoff(DType::kBF16)) {
    const std::string_view suspect = Precision(truth.dtype) <= 11                ? Name(truth.dtype)
                                     : roundoff > UnitRoundoff(DType::kBF16) / 3 ? "bf16"
                                                                                 : "f16 or TF32";
    return fmt::format(
        "errors have the size that arithmetic in {} gives, not {}: an accumulator or an "
        "intermediate is narrower than the contract",
        suspect, Name(contract.accumulate));
  }
  return {};
}

}  // namespace assay::oracle
