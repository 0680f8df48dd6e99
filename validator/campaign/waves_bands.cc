// Cases of which each piece of a long axis is most of some result. A kernel that loses a piece in the middle of thousands, or
// takes one twice, changes a sum of ordinary values by less than narrow results round away; a sum of which all but a
// few hundred terms are zero it changes for all to see.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "ops/properties.h"
#include "validator/campaign/campaign.h"
#include "validator/campaign/parts.h"
#include "validator/cases/profiles.h"
#include "validator/cases/recipes.h"
#include "validator/cases/shapes.h"

namespace assay::campaign {
namespace {

/// Do results grow as the input does? Then zeros in it take its terms out of a sum, and nothing else.
bool IsLinearIn(const ops::OpSpec& op, std::string_view input) {
  return std::ranges::any_of(op.properties, [&](const ops::Property& property) {
    return (property.name == "scale_equivariant" || property.name == "linear") &&
           property.arguments.front() == input;
  });
}

/// Of a matrix, the axis beside the one that is named, which is among its last two.
std::string BesideIn(const ops::TensorSpec& matrix, std::string_view axis) {
  const std::size_t dimension = ops::DimensionOf(matrix, axis).value_or(0);
  return matrix.shape[dimension + 1 == matrix.shape.size() ? dimension - 1 : dimension + 1].text();
}

}  // namespace

const ops::TensorSpec* Campaign::MatrixAlong(std::string_view axis) const {
  const ops::TensorSpec* found = nullptr;
  for (const ops::TensorSpec& spec : trial_.instance.op.inputs) {
    const auto dimension = ops::DimensionOf(spec, axis);
    if (spec.shape.size() >= 2 && dimension && *dimension + 2 >= spec.shape.size() &&
        IsLinearIn(trial_.instance.op, spec.name) &&
        cases::IsOf(cases::InputClass::kFloat, trial_.instance, spec))
      found = &spec;
  }
  return found;
}

// Twice of each axis: beside the shortest of all others, and beside some of those that a mask compares with it.
std::vector<Task> Campaign::Banded() const {
  constexpr std::int64_t kLongest = std::int64_t{1} << 14, kShortest = 4224, kSpread = 1024;
  constexpr std::int64_t kBands = 64, kSome = 80;
  constexpr double kMostSteps = 1.2e8;
  const ops::OpSpec& op = trial_.instance.op;
  Rng rng(DeriveSeed(trial_.seed, "banded"));
  std::vector<Task> planned;
  for (const ops::Axis& axis : op.axes) {
    if (axis.kind != ops::Axis::Kind::kVariable || axis.max < kShortest + kSpread ||
        !ops::MayBeReducedOver(op, axis.name))
      continue;
    const ops::TensorSpec* const matrix = MatrixAlong(axis.name);
    if (matrix == nullptr) continue;
    for (const std::int64_t some : {std::int64_t{1}, kSome}) {
      ops::AxisValues beside;
      for (const ops::Axis& other : op.axes) beside[other.name] = other.min;
      for (const std::string& other : ops::AxesInStepWith(op, axis.name))
        if (other != axis.name) beside[other] = some;
      beside[BesideIn(*matrix, axis.name)] = kBands;
      // What is estimated by small shapes may be far too much: the shortest is tried at any rate, in part.
      std::optional<ops::AxisValues> fits;
      for (std::int64_t most = std::min(axis.max, kLongest);;
           most = std::max(most / 2, kShortest)) {
        const std::int64_t length =
            most - static_cast<std::int64_t>(rng.Below(static_cast<std::uint64_t>(kSpread)));
        const auto axes = cases::SolveNear(op, axis.name, std::max(length, kShortest), beside);
        if (!axes) break;
        fits = *axes;
        if (most == kShortest ||
            (RunsWhole(*axes) ? WholeStepsFor(*axes) : BlockStepsFor(*axes)) <= kMostSteps)
          break;
      }
      if (!fits || std::ranges::any_of(
                       planned, [&](const Task& task) { return task.probe.case_.axes == *fits; }))
        continue;
      cases::Case value =
          cases::MakeCase(trial_.instance, *cases::FindRecipe("plain"), *std::move(fits),
                          DeriveSeed(trial_.seed, "banded") + planned.size(), "long");
      value.profiles[matrix->name] = {.kind = "banded", .parameters = {}, .literal = {}};
      Task task = TaskFor(std::move(value), "long");
      if (WholeStepsFor(task.probe.case_.axes) > kMostSteps) {
        task.probe.ends_only = true;
        task.wants.slice_steps = kValueSliceSteps;
        task.wants.least_blocks = 1;
        task.wants.part_steps = kLongSliceSteps;
      }
      std::vector<Task> tasks = WithEachFlag(std::move(task));
      planned.push_back(std::move(tasks[planned.size() % tasks.size()]));
    }
  }
  return planned;
}

}  // namespace assay::campaign
