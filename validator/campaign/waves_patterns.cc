// Waves of values in patterns along rows of several warps: runs of zeros, ties, order with one exception.
#include <algorithm>
#include <iterator>
#include <set>

#include "base/rng.h"
#include "ops/properties.h"
#include "validator/campaign/campaign.h"
#include "validator/cases/profiles.h"
#include "validator/cases/recipes.h"
#include "validator/cases/shapes.h"

namespace assay::campaign {

// Rows of several warps, blocks and chunks whose values lie in patterns: runs of zeros, ties, order
// with one exception.
//
// Where results are made over another axis than that of the first input's rows (the products that a choice is
// made among), that one is the long one as well, with its largest values far apart.
std::vector<Task> Campaign::Patterns() {
  std::vector<Task> planned;
  const std::uint64_t seed = DeriveSeed(trial_.seed, "patterns");
  const ops::OpSpec& op = trial_.instance.op;
  const auto first = std::ranges::find_if(op.inputs, [&](const ops::TensorSpec& spec) {
    return !spec.is_scalar && !spec.shape.empty() && IsFloat(trial_.instance.TypeOf(spec));
  });
  const std::string_view along =
      first == op.inputs.end() ? std::string_view() : first->shape.back().text();
  const auto add = [&](const cases::Recipe& recipe, const ops::AxisValues& axes) {
    planned.push_back(
        TaskFor(cases::MakeCase(trial_.instance, recipe, axes, seed + planned.size(), "value"),
                "patterns"));
  };
  for (const std::int64_t longest : {390, 1291}) {
    const auto axes = WithRows(along, longest);
    for (const cases::Recipe& recipe : cases::AllRecipes()) {
      if (axes && recipe.wide && cases::Applies(recipe, trial_.instance)) add(recipe, *axes);
    }
  }
  for (const ops::Axis& axis : op.axes) {
    if (axis.name == along || axis.kind != ops::Axis::Kind::kVariable ||
        !ops::MayBeReducedOver(op, axis.name))
      continue;
    const auto axes = WithRows(axis.name, 390);
    if (!axes || axes->at(axis.name) != 390) continue;
    add(*cases::FindRecipe("far_apart"), *axes);
    // As few results as there are large values: where more are made, a program may go another way.
    constexpr std::int64_t kFew = 5;
    for (const ops::Axis& of_results : op.axes) {
      const bool has = std::ranges::any_of(op.inputs, [&](const ops::TensorSpec& spec) {
        return ops::DimensionOf(spec, of_results.name).has_value();
      });
      const auto few = has || axes->at(of_results.name) <= kFew
                           ? std::nullopt
                           : std::optional(cases::SolveNear(op, of_results.name, kFew, *axes));
      if (few && *few) add(*cases::FindRecipe("far_apart"), **few);
    }
  }
  std::ranges::move(OutOfOrder(), std::back_inserter(planned));
  return planned;
}

// Indices that are sorted but for one step down, inside of a warp, between two, and between two blocks: who looks at
// neighbours alone sees not all of them, and takes the way of those that are sorted. Among fewer rows, so that they repeat.
std::vector<Task> Campaign::OutOfOrder() const {
  constexpr std::int64_t kIndices = 390, kRows = 37, kFew = 3;
  const ops::OpSpec& op = trial_.instance.op;
  std::vector<Task> planned;
  for (const ops::TensorSpec& indices : op.inputs) {
    if (indices.shape.empty() || !cases::IsOf(cases::InputClass::kIndex, trial_.instance, indices))
      continue;
    ops::AxisValues wanted;
    for (const ops::Axis& axis : op.axes) wanted[axis.name] = std::max(kFew, axis.min);
    if (!indices.domain.of.empty()) wanted[indices.domain.of] = kRows;
    wanted[indices.shape.back().text()] = kIndices;
    const auto axes = cases::SolveAxes(op, {}, wanted);
    if (!axes) continue;
    for (const double place : {17, 32, 256}) {
      cases::Case value =
          cases::MakeCase(trial_.instance, *cases::FindRecipe("exact"), *axes,
                          DeriveSeed(trial_.seed, "out of order") + planned.size(), "value");
      value.profiles[indices.name] = {
          .kind = "sorted_but_one", .parameters = {{"place", place}}, .literal = {}};
      planned.push_back(TaskFor(std::move(value), "patterns"));
    }
  }
  return planned;
}

std::optional<ops::AxisValues> Campaign::WithRows(std::string_view along,
                                                  std::int64_t longest) const {
  const ops::OpSpec& op = trial_.instance.op;
  ops::AxisValues wanted;
  // What indices choose among is shorter than their number: they repeat.
  for (const ops::Axis& axis : op.axes) wanted[axis.name] = longest == 390 ? 70 : 37;
  for (const ops::TensorSpec& spec : op.inputs) {
    if (!spec.domain.of.empty()) wanted[spec.domain.of] = 19;
  }
  if (!along.empty()) wanted[std::string(along)] = longest;
  auto axes = cases::SolveAxes(op, {}, wanted);
  // What only results have (how many are chosen) stays long as long as can be.
  for (const bool of_inputs : {true, false}) {
    std::int64_t rows = 70;
    while (axes && rows > 3 &&
           (cases::TotalElements(trial_.instance, *axes) > trial_.effort.max_elements ||
            StepsFor(*axes) > static_cast<double>(trial_.effort.campaign_steps) / 400)) {
      rows /= 2;
      for (auto& [name, extent] : wanted) {
        const bool has = std::ranges::any_of(op.inputs, [&](const ops::TensorSpec& spec) {
          return ops::DimensionOf(spec, name).has_value();
        });
        if (name != along && (!of_inputs || has)) extent = std::min(extent, rows);
      }
      axes = cases::SolveAxes(op, {}, wanted);
    }
  }
  if (!axes || cases::TotalElements(trial_.instance, *axes) > trial_.effort.max_elements)
    return std::nullopt;
  return *axes;
}

}  // namespace assay::campaign
