// What the errors of one output look like as a whole.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "validator/oracle/causes.h"
#include "validator/oracle/element.h"

namespace assay::oracle {
namespace {

// An honest kernel's error is some way below `typical`, so an observed one of a narrower type is,
// too.
constexpr double kTypicalOverReal = 3;
// Fewer results may be short, or lie below their truths, by chance.
constexpr int kFewestForBits = 24;
constexpr double kFewestForDirection = 8;

/// Significant bits of a finite number, the trailing zeros left out.
int BitsOf(double value) {
  if (value == 0) return 0;
  constexpr std::uint64_t kHidden = std::uint64_t{1} << 52;
  const std::uint64_t significand = (std::bit_cast<std::uint64_t>(value) & (kHidden - 1)) | kHidden;
  return 53 - std::countr_zero(significand);
}

/// Results against the two neighbours of their truths.
struct Directions {
  double up = 0;         ///< Truths that are rounded away from zero,
  double up_kept = 0;    ///< and results that lie below those all the same, by less than an ulp.
  double down = 0;       ///< Truths that are rounded toward zero,
  double down_kept = 0;  ///< and results that equal those.

  void Add(DType dtype, double value, double result) {
    const double nearest = Rounded(dtype, value);
    if (nearest == value || !std::isfinite(nearest)) return;
    const double size = std::fabs(value), got = value < 0 ? -result : result;
    if (std::fabs(nearest) > size) {
      up += 1;
      if (got <= size && got > size - UlpAt(dtype, value)) up_kept += 1;
    } else {
      down += 1;
      if (result == nearest) down_kept += 1;
    }
  }
  double Truncated() const {
    return up < kFewestForDirection || down < kFewestForDirection
               ? 0
               : std::min(up_kept / up, down_kept / down);
  }
};

/// How many rows, of those that are named in ascending order.
class RowCount {
 public:
  void Add(std::size_t row) {
    if (row == last_) return;
    last_ = row;
    count_ += 1;
  }
  double count() const { return count_; }

 private:
  std::size_t last_ = SIZE_MAX;
  double count_ = 0;
};

}  // namespace

ErrorShape ShapeOf(const ops::Contract& contract, const OutputTruth& truth, const Tensor& got) {
  ErrorShape shape;
  const std::size_t columns = truth.shape.size() < 2 || truth.shape.back() <= 0
                                  ? 1
                                  : static_cast<std::size_t>(truth.shape.back());
  double constrained = 0, nonzero = 0, shrunk = 0;
  RowCount rows, zero_rows;
  int most_bits = 0, truth_bits = 0, tellable = 0;
  double got_truth = 0, truth2 = 0, error2 = 0, typical2 = 0;
  Directions directions;
  for (std::size_t i = 0; i < truth.value.size(); ++i) {
    const double value = truth.value[i];
    const double result = got.At(static_cast<std::int64_t>(i));
    if (!std::isfinite(value) || !std::isfinite(result) || !std::isfinite(truth.allowance[i]))
      continue;
    constrained += 1;
    if (value != 0) {
      nonzero += 1;
      rows.Add(i / columns);
    }
    const double error = result - value;
    if (std::fabs(error) > truth.allowance[i]) {
      shape.bad += 1;
      if (std::fabs(result) < std::fabs(value)) shrunk += 1;
      if (result == 0 && value != 0) {
        shape.zero_elements += 1;
        zero_rows.Add(i / columns);
      }
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
      truth_bits = std::max(truth_bits, BitsOf(Rounded(truth.dtype, value)));
      directions.Add(truth.dtype, value, result);
      const double off =
          std::fabs(result - Rounded(truth.dtype, value)) / UlpAt(truth.dtype, value);
      shape.largest_ulps = std::max(shape.largest_ulps, off);
    }
  }
  if (constrained == 0) return shape;
  if (tellable >= kFewestForBits) {
    shape.bits = most_bits;
    shape.truth_bits = truth_bits;
  }
  shape.nonzero = nonzero;
  shape.rows = rows.count();
  shape.zero_rows = zero_rows.count();
  shape.truncated = directions.Truncated();
  shape.beyond = shape.bad / constrained;
  shape.zeros = nonzero > 0 ? shape.zero_elements / nonzero : 0;
  shape.shrunk = shape.bad > 0 ? shrunk / shape.bad : 0;
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

}  // namespace assay::oracle
