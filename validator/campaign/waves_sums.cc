#include <algorithm>
#include <utility>

#include "ops/properties.h"
#include "validator/campaign/campaign.h"
#include "validator/campaign/parts.h"
#include "validator/campaign/sums.h"
#include "validator/cases/profiles.h"
#include "validator/cases/recipes.h"
#include "validator/cases/shapes.h"
#include "validator/ptx/facts/facts.h"

namespace assay::campaign {

std::optional<cases::Case> CaseOfSums(const Trial& trial, const ops::AxisValues& axes,
                                      std::string origin, std::uint64_t seed) {
  const ops::OpSpec& op = trial.instance.op;
  const bool adds = std::ranges::any_of(trial.plan.kernels, [&](const ops::KernelPlan& kernel) {
    const auto lowered = trial.compiled.lowered.find(kernel.entry);
    return lowered != trial.compiled.lowered.end() &&
           facts::OnlyAdds(trial.compiled.facts.get(), lowered->second);
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
      cases::MakeCase(trial.instance, *cases::FindRecipe("plain"), axes, seed, std::move(origin));
  for (const ops::TensorSpec& spec : op.inputs) {
    if (spec.is_scalar || spec.IsGenerated()) continue;
    cases::Profile& profile = value.profiles[spec.name];
    switch (cases::ClassOf(spec, trial.instance.TypeOf(spec))) {
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
  return value;
}

ops::AxisValues WithFewTermsEach(const ops::OpSpec& op, ops::AxisValues axes) {
  constexpr std::int64_t kTerms = 16;
  for (const ops::TensorSpec& spec : op.inputs) {
    const ops::Axis* const places = op.FindAxis(spec.domain.of);
    if (spec.domain.kind != ops::Domain::Kind::kIndex || places == nullptr || spec.shape.empty() ||
        places->kind != ops::Axis::Kind::kVariable)
      continue;
    const auto terms = axes.find(spec.shape.front().text());
    if (terms == axes.end() || terms->first == places->name) continue;
    const std::int64_t wanted = std::min(places->max, terms->second / kTerms);
    if (wanted <= axes.at(places->name)) continue;
    if (const auto solved = cases::SolveNear(op, places->name, wanted, axes)) axes = *solved;
  }
  return axes;
}

std::optional<Task> Campaign::SumsOf(const ops::AxisValues& axes, std::string purpose,
                                     std::uint64_t seed) const {
  const auto value = CaseOfSums(trial_, axes, purpose, seed);
  if (!value) return std::nullopt;
  Task task = TaskFor(*value, std::move(purpose));
  task.probe.case_.profiles = value->profiles;
  task.probe.ends_only = true;
  return task;
}

}  // namespace assay::campaign
