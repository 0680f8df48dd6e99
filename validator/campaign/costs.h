// Costs: what cases took, and what another shape will take by that.
//
// The nearest shape that ran is scaled: by each axis' ratio, for most kernels do so much for each
// index of each axis. The square of the ratio of elements, which a kernel that is quadratic in an axis comes to, is mostly
// the most; but one tensor may hide that another grows, so an estimate lies in the middle of both, as logarithms, where the
// axes say more. So an estimate is exact in the long run of what was tried, and grows with what was not.
//
// Deterministic; cost linear in the number of shapes kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "ops/op.h"

namespace assay::campaign {

class Costs {
 public:
  static constexpr std::size_t kMost = 256;

  /// A case at `axes` with so many elements took `steps`.
  void Learn(const ops::AxisValues& axes, std::int64_t elements, double steps);
  bool empty() const { return samples_.empty(); }
  /// Nothing before anything of some size ran.
  std::optional<double> Estimate(const ops::AxisValues& axes, std::int64_t elements) const;
  /// By the axes alone: what it takes where it does so much for each index of each.
  std::optional<double> EstimateAtMost(const ops::AxisValues& axes) const;
  /// What each of so many parts of a case takes, blocks say, where Learn was told of each of the parts and how many they
  /// were: what the nearest shape took, and more where axes grow that make no more parts, which tiles hide in part.
  /// Constant extents, of which elements are made as well, have no say.
  std::optional<double> EstimateEach(const ops::AxisValues& axes, std::int64_t parts) const;

 private:
  struct Sample {
    std::vector<double> logs;  ///< Of the extents, in the order of the axes' names.
    double elements = 0;       ///< In logarithms as well,
    double steps = 0;          ///< and these.
  };
  const Sample* Nearest(const std::vector<double>& logs) const;

  std::vector<Sample> samples_;
};

}  // namespace assay::campaign
