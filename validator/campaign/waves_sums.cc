// Cases of which the last blocks run and what they add is looked at (sums.cc): where blocks add floats to
// memory, so that no part of the grid gives whole results, and the whole grid takes too long.
#include <algorithm>
#include <optional>

#include "ops/properties.h"
#include "validator/campaign/campaign.h"
#include "validator/campaign/parts.h"
#include "validator/cases/profiles.h"
#include "validator/cases/recipes.h"
#include "validator/ptx/facts/facts.h"

namespace assay::campaign {

std::optional<Task> Campaign::SumsOf(const ops::AxisValues& axes, std::string purpose,
                                     std::uint64_t seed) const {
  const ops::OpSpec& op = trial_.instance.op;
  const bool adds = std::ranges::any_of(trial_.plan.kernels, [&](const ops::KernelPlan& kernel) {
    const auto lowered = trial_.compiled.lowered.find(kernel.entry);
    return lowered != trial_.compiled.lowered.end() &&
           facts::OnlyAdds(trial_.compiled.facts.get(), lowered->second);
  });
  const auto complete = ops::ResolveAxes(op, axes);
  if (!adds || !complete || NeedsZerosBetween(op)) return std::nullopt;
  const auto elements_of = [&](const ops::TensorSpec& spec) {
    const auto shape = ops::ResolveShape(spec, *complete);
    return shape ? ElementCount(*shape).value_or(0) : 0;
  };
  // The largest of the inputs that an output is linear in.
  const ops::TensorSpec* front = nullptr;
  for (const ops::Property& property : op.properties) {
    if (property.name != "linear") continue;
    const ops::TensorSpec* const input = op.FindInput(property.arguments[0]);
    if (front == nullptr || elements_of(*input) > elements_of(*front)) front = input;
  }
  if (front == nullptr) return std::nullopt;
  cases::Case value =
      cases::MakeCase(trial_.instance, *cases::FindRecipe("plain"), axes, seed, purpose);
  for (const ops::TensorSpec& spec : op.inputs) {
    if (spec.is_scalar || spec.IsGenerated()) continue;
    cases::Profile& profile = value.profiles[spec.name];
    switch (cases::ClassOf(spec, trial_.instance.TypeOf(spec))) {
      case cases::InputClass::kFloat:
        profile = {.kind = "uniform", .parameters = {{"low", 0.5}, {"high", 2}}, .literal = {}};
        break;
      case cases::InputClass::kIndex:
        // The last terms go elsewhere than the first. These have to be made.
        if (elements_of(spec) > kMostMade) return std::nullopt;
        profile = {.kind = "sorted", .parameters = {}, .literal = {}};
        break;
      default:
        break;
    }
  }
  value.profiles[front->name] = {.kind = "front", .parameters = {}, .literal = {}};
  const auto profiles = value.profiles;
  Task task = TaskFor(std::move(value), std::move(purpose));
  task.probe.case_.profiles = profiles;
  task.probe.ends_only = true;
  return task;
}

}  // namespace assay::campaign
