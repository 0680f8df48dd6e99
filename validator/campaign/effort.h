// How much is tried at each effort. All budgets are counted in cases and emulated steps, never in
// seconds, so that a verdict does not depend on the machine.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/op.h"

namespace assay::campaign {

enum class Effort : std::uint8_t { kQuick, kStandard, kThorough };

struct EffortRow {
  Effort effort;
  std::size_t shapes;           ///< Distinct shapes in the campaign.
  std::int64_t max_elements;    ///< Of all tensors of an ordinary case.
  std::int64_t long_elements;   ///< Of the cases that stretch one axis.
  std::int64_t whole_elements;  ///< Beyond, some blocks of each launch run (slices.cc).
  std::size_t recipe_shapes;    ///< Shapes on which every recipe is tried.
  std::size_t mixed_cases;      ///< Every input with a profile of its own.
  std::size_t schedules;        ///< Orders of blocks and warps explored where they may matter.
  std::size_t guided_cases;     ///< Aimed at branch sides that no case has reached.
  std::size_t sliced_cases;     ///< Workloads and longest extents, run in slices.
  std::size_t huge_shapes;      ///< Past limits of 32-bit numbers, of which only the ends are run.
  std::size_t property_cases;   ///< For each declared property.
  std::size_t holdout_cases;
  std::size_t device_cases;      ///< On a GPU, where there is one.
  int shrink_trials;             ///< For each counterexample.
  std::uint64_t campaign_steps;  ///< Cases that would go beyond are left out, the costliest first.
};

const EffortRow& RowOf(Effort effort);

/// The row for an op: where even its smallest shape is large, because extents are constant, budgets
/// of elements follow it, and fewer cases are tried. Other ops keep the row as it is.
EffortRow FitTo(const EffortRow& row, const ops::Instance& instance);

/// Elements of the op's smallest shape; 0 where none can be found.
std::int64_t SmallestElements(const ops::Instance& instance);

/// Are cases at the op's smallest shapes next to nothing?
bool HasSmallShapes(const ops::Instance& instance);

/// What a slice is taken to cost, where nothing else is known of it.
inline constexpr double kNominalSliceSteps = 8e6;

/// What the blocks of a slice are to take together that tries values, rather than places.
inline constexpr std::uint64_t kValueSliceSteps = 6'000'000;

/// Steps after which a run of a tiny case is stopped.
inline constexpr std::uint64_t kTinySteps = 20'000'000;
/// Steps that the ends of a huge case are planned with.
inline constexpr std::uint64_t kHugeSteps = 40'000'000;
/// Steps after which they are left out: plans are guesses from small cases.
inline constexpr std::uint64_t kMostHugeSteps = 16 * kHugeSteps;
/// What the blocks of a slice may take.
inline constexpr std::uint64_t kMostSliceSteps = 800'000'000;
/// And where one block is estimated to take more than that.
inline constexpr std::uint64_t kLongSliceSteps = kMostSliceSteps / 4;
/// Steps for a part of a case in which a number outgrows its format, where nothing smaller shows it:
/// all blocks of a grid that cannot be cut, or one that loops over millions of elements.
inline constexpr std::uint64_t kMostLimitSteps = 4'000'000'000;
/// The same of where all blocks write, where nobody else says who writes the end of an output.
inline constexpr std::uint64_t kMostPlacesSteps = 20'000'000'000;
/// What all blocks of a case may take, where some of them would do as well.
inline constexpr std::uint64_t kWholeSteps = 500'000'000;
/// Of a run of what cannot be cut, where a smaller shape does as well.
inline constexpr double kAffordableSteps = 1e8;
/// Steps granted to a case of `elements` elements when tiny ones needed `steps_per_element`, run by
/// `threads` threads: those that find nothing to do take steps as well.
std::uint64_t StepLimit(std::int64_t elements, double steps_per_element, std::uint64_t threads);

}  // namespace assay::campaign
