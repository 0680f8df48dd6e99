// Shapes worth trying: edges of every axis, sizes around those that the candidate itself names,
// primes, powers of two ±1, and the op's workloads scaled to a budget.
//
// Constraints are solved by bounded backtracking over the values that matter (SolveAxes). A wanted
// value that the constraints refuse is moved to the nearest admissible one, so that `hidden % 8 ==
// 0` turns 33 into 32 or 40 rather than into nothing.
//
// Deterministic in (instance, request). Cost: microseconds to a few milliseconds a shape.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "ops/launch_plan.h"
#include "ops/op.h"

namespace assay::cases {

/// Values for all variable axes that satisfy ranges and constraints: `pinned` ones exactly, the
/// others near `preferred` if given, else small. An error names the constraint that was violated
/// most often, and says so when the spec admits nothing at all.
Result<ops::AxisValues> SolveAxes(const ops::OpSpec& op, const ops::AxisValues& pinned,
                                  const ops::AxisValues& preferred = {});

/// SolveAxes with `axis` at the admissible value nearest to `value`, at most 64 away.
Result<ops::AxisValues> SolveNear(const ops::OpSpec& op, const std::string& axis,
                                  std::int64_t value, const ops::AxisValues& preferred = {});

struct ShapeRequest {
  std::int64_t max_elements = 1 << 16;  ///< Of all inputs and outputs together.
  std::size_t count = 40;
  std::uint64_t seed = 0;
  std::vector<std::int64_t>
      constants;  ///< Literals of the candidate: tile sizes, block sizes, special cases.
};

struct ShapeChoice {
  ops::AxisValues axes;
  std::string origin;  ///< "edge", "constant", "warp", "prime", "power", "workload", "random"
  bool operator==(const ShapeChoice&) const = default;
};

/// Distinct shapes, the most telling first. Error only when the op admits no shape within the
/// budget.
Result<std::vector<ShapeChoice>> GenerateShapes(const ops::Instance& instance,
                                                const ShapeRequest& request);

/// Shapes one step away from `around` (±1 and doubled on an axis), for the holdout gate.
std::vector<ShapeChoice> Neighbours(const ops::Instance& instance, const ops::AxisValues& around,
                                    std::int64_t max_elements);

/// The op's workloads, halved until they fit `max_elements`.
std::vector<ShapeChoice> ScaledWorkloads(const ops::Instance& instance, std::int64_t max_elements);

/// Each axis at its maximum and at sizes past which plans tend to break (1024 threads, 65535
/// blocks), the others small. Not for running: for evaluating plans.
std::vector<ShapeChoice> ExtremeShapes(const ops::Instance& instance);

/// Shapes of which one tensor has just more than 2^31 bytes, or elements than 2^31, 2^24 or 2^32: as
/// long as possible along the axes with the most room (then along the leading ones), as short as
/// that allows along the others, so that a row costs little. Of a dear one, other axes reach that
/// far in its place, if they do so for less. Nothing where the op's axes do not reach that far.
std::vector<ShapeChoice> HugeShapes(
    const ops::Instance& instance,
    const std::function<bool(const ops::AxisValues&)>& is_dear = nullptr);

/// Integer literals of all expressions of a plan: tile and block sizes. Sorted, distinct, without 0
/// and 1.
std::vector<std::int64_t> ConstantsOf(const ops::LaunchPlan& plan);

}  // namespace assay::cases
