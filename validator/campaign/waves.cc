// The waves of a campaign: which cases each of them tries.
#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <set>
#include <string_view>

#include "base/rng.h"
#include "ops/properties.h"
#include "validator/campaign/campaign.h"
#include "validator/campaign/parts.h"
#include "validator/campaign/repetitions.h"
#include "validator/cases/profiles.h"
#include "validator/cases/recipes.h"
#include "validator/cases/shapes.h"

namespace assay::campaign {

bool Campaign::IsOfRows(std::string_view axis) const {
  return std::ranges::any_of(trial_.instance.op.inputs, [&](const ops::TensorSpec& spec) {
    return !spec.is_scalar && spec.shape.size() > 1 && IsFloat(trial_.instance.TypeOf(spec)) &&
           ops::DimensionOf(spec, axis) == spec.shape.size() - 1;
  });
}

std::vector<Task> Campaign::Regressions() {
  std::vector<Task> planned;
  for (const verdict::Counterexample& known : trial_.regressions) {
    if (!known.probe || known.op != trial_.instance.op.name) continue;
    Task one = TaskFor(known.probe->case_, "regressions");
    one.probe = *known.probe;
    one.probe.case_.origin = "regression";
    // The op may have changed since: what no longer fits it is no longer a case.
    if (!cases::MaterialisePlain(trial_.instance, one.probe.case_)) continue;
    planned.push_back(std::move(one));
  }
  return planned;
}

std::vector<Task> Campaign::Smoke() {
  cases::ShapeRequest request{.max_elements = trial_.effort.max_elements,
                              .count = trial_.effort.shapes,
                              .seed = trial_.seed,
                              .constants = cases::ConstantsOf(trial_.plan)};
  const auto shapes = cases::GenerateShapes(trial_.instance, request);
  if (!shapes) {
    harvest_.inconclusive = ToString(shapes.error());
    return {};
  }
  for (const cases::ShapeChoice& shape : *shapes) shapes_.push_back(shape.axes);
  std::vector<Task> planned;
  for (const std::string_view recipe : {"exact", "plain"}) {
    for (std::size_t i = 0; i < std::min<std::size_t>(4, shapes_.size()); ++i) {
      planned.push_back(
          TaskFor(cases::MakeCase(trial_.instance, *cases::FindRecipe(recipe), shapes_[i],
                                  DeriveSeed(trial_.seed, "smoke") + i, "edge"),
                  "smoke"));
    }
  }
  // That takes no instruction to find out.
  for (const ops::AxisValues& axes : WhereNothingRuns()) {
    planned.insert(planned.begin(),
                   SliceOf(axes, "smoke", DeriveSeed(trial_.seed, "nothing runs")));
    planned.front().sure = true;
  }
  return planned;
}

// Every recipe where every axis is as short as the op allows, or two or three: most mistakes in
// formulas show there, on cases that cost next to nothing and need no shrinking.
std::vector<Task> Campaign::Tiny() {
  std::vector<Task> planned;
  const std::uint64_t seed = DeriveSeed(trial_.seed, "tiny");
  std::set<ops::AxisValues> seen;
  for (const std::int64_t size : {1, 2, 3}) {
    ops::AxisValues wanted;
    for (const ops::Axis& axis : trial_.instance.op.axes) wanted[axis.name] = size;
    const auto axes = cases::SolveAxes(trial_.instance.op, {}, wanted);
    if (!axes || !seen.insert(*axes).second ||
        cases::TotalElements(trial_.instance, *axes) > trial_.effort.max_elements)
      continue;
    for (const cases::Recipe& recipe : cases::AllRecipes()) {
      if (!cases::Applies(recipe, trial_.instance) || recipe.wide) continue;
      planned.push_back(TaskFor(
          cases::MakeCase(trial_.instance, recipe, *axes, seed + planned.size(), "edge"), "tiny"));
    }
    if (trial_.effort.recipe_shapes < 2) break;
  }
  return planned;
}

// Every shape with exact values, which need no tolerance, or with ordinary ones, in turn.
std::vector<Task> Campaign::Shapes() {
  std::vector<Task> planned;
  const std::uint64_t seed = DeriveSeed(trial_.seed, "shapes");
  for (std::size_t i = 4; i < shapes_.size(); ++i) {
    const cases::Recipe& recipe = *cases::FindRecipe(i % 3 == 2 ? "plain" : "exact");
    planned.push_back(
        TaskFor(cases::MakeCase(trial_.instance, recipe, shapes_[i], seed + i, "edge"), "shapes"));
  }
  return planned;
}

// Every recipe on shapes of middling size, then inputs that draw from different recipes.
std::vector<Task> Campaign::Values() {
  std::vector<ops::AxisValues> middling = shapes_;
  std::ranges::stable_sort(middling, {}, [&](const ops::AxisValues& axes) {
    return std::abs(cases::TotalElements(trial_.instance, axes) - 1500);
  });
  std::vector<Task> planned;
  const std::uint64_t seed = DeriveSeed(trial_.seed, "values");
  Rng tails(DeriveSeed(seed, "tails"));
  std::size_t number = 0;
  for (const cases::Recipe& recipe : cases::AllRecipes()) {
    if (!cases::Applies(recipe, trial_.instance) || recipe.wide) continue;
    for (std::size_t i = 0; i < std::min(trial_.effort.recipe_shapes, middling.size()); ++i) {
      ops::AxisValues axes = middling[(number + i) % std::min<std::size_t>(middling.size(), 6)];
      // Where nothing is small, another length costs what any does.
      if (only_slices_) axes = WithAnotherTail(std::move(axes), number, tails);
      planned.push_back(TaskFor(
          cases::MakeCase(trial_.instance, recipe, axes, seed + number, "value"), "values"));
      ++number;
    }
  }
  for (std::size_t i = 0; i < trial_.effort.mixed_cases; ++i) {
    planned.push_back(TaskFor(cases::MakeMixedCase(trial_.instance, middling[i % middling.size()],
                                                   seed + 1000 + i, "random"),
                              "values"));
  }
  return planned;
}

// At the numbers that the program compares with.
std::vector<Task> Campaign::Aimed() {
  std::vector<Task> planned;
  const ProgramConstants constants = ConstantsOfProgram(trial_.compiled.facts.get());
  for (cases::Case& value :
       AimedCases(trial_.instance, constants, trial_.effort.long_elements,
                  trial_.effort.guided_cases, DeriveSeed(trial_.seed, "aimed"))) {
    planned.push_back(TaskFor(std::move(value), "aimed"));
  }
  std::ranges::move(RippledRows(constants.integers), std::back_inserter(planned));
  std::ranges::move(LatePast(constants), std::back_inserter(planned));
  std::ranges::move(LatePastThePlan(), std::back_inserter(planned));
  std::ranges::move(MaskedPast(constants), std::back_inserter(planned));
  std::ranges::move(HotPast(), std::back_inserter(planned));
  std::ranges::move(Crowded(constants, {}), std::back_inserter(planned));
  return planned;
}

// Two axes past constants at once: `rows > gridDim.x && columns > 256` wants both. What is past the
// largest constants that fit together is past all smaller ones. Before them kernels that the plan chooses by lengths, where
// they begin.
std::vector<Task> Campaign::Paired() {
  std::vector<Task> planned;
  ProgramConstants constants = ConstantsOfProgram(trial_.compiled.facts.get());
  for (const std::int64_t constant : cases::ConstantsOf(trial_.plan))
    constants.integers.push_back(constant);
  const double budget = static_cast<double>(trial_.effort.campaign_steps) / 32;
  const std::int64_t most = 2 * trial_.effort.long_elements + (1 << 16);
  const auto fits = [&](const ops::AxisValues& axes) {
    return cases::TotalElements(trial_.instance, axes) <= most && StepsFor(axes) <= budget / 4;
  };
  constexpr std::size_t kMostKernels = 10;
  for (const ops::AxisValues& axes : WhereKernelsBegin()) {
    if (planned.size() >= kMostKernels) break;
    const std::uint64_t seed = DeriveSeed(trial_.seed, "kernels begin") + planned.size();
    Task& task = planned.emplace_back(
        FitsWhole(axes) && fits(axes)
            ? TaskFor(cases::MakeCase(trial_.instance, *cases::FindRecipe("plain"), axes, seed,
                                      "paired"),
                      "paired")
            : SliceOf(axes, "paired", seed));
    task.sure = true;
    task.wants.part_steps = IsSlice(task.probe) ? kLongSliceSteps : 0;
  }
  double total = 0;
  for (cases::Case& value :
       PairedCases(trial_.instance, constants, fits, DeriveSeed(trial_.seed, "paired"))) {
    if (planned.size() >= trial_.effort.guided_cases / 4) break;
    Task task = TaskFor(std::move(value), "paired");
    total += StepsFor(task.probe.case_.axes);
    if (total > budget) {
      harvest_.ledger.Planned("paired");
      LeaveOut(task, kBeyondBudget, harvest_);
      continue;
    }
    planned.push_back(std::move(task));
  }
  return planned;
}

// What reached something new is worth another look: the same shape with other values, its
// neighbours with the same ones; and the largest of these shapes with values that are rare.
std::vector<Task> Campaign::Varied() {
  std::vector<Task> planned;
  const std::uint64_t seed = DeriveSeed(trial_.seed, "varied");
  for (const cases::Case& fresh : fresh_) {
    if (planned.size() >= trial_.effort.guided_cases) break;
    const std::int64_t elements = cases::TotalElements(trial_.instance, fresh.axes);
    if (elements > trial_.effort.max_elements) continue;
    planned.push_back(
        TaskFor(cases::MakeMixedCase(trial_.instance, fresh.axes, seed + planned.size(), "varied"),
                "varied"));
    for (const cases::ShapeChoice& near :
         cases::Neighbours(trial_.instance, fresh.axes, 2 * elements + 64)) {
      cases::Case moved = fresh;
      moved.axes = near.axes;
      moved.origin = "varied";
      planned.push_back(TaskFor(std::move(moved), "varied"));
      if (planned.size() % 3 == 0) break;
    }
  }
  std::ranges::move(RareValues(), std::back_inserter(planned));
  return planned;
}

// Each way through a program has its own first maximum, its own eps and its own sums, and those of long rows
// have seen ordinary values alone: masked or level ones, far from zero, and such as overflow or vanish.
std::vector<Task> Campaign::RareValues() const {
  constexpr std::size_t kShapes = 3;
  constexpr std::array<std::string_view, 8> kRecipes = {
      "masked", "infinite_rows", "low", "high", "tiny", "constant", "extremes", "large"};
  const double budget = static_cast<double>(trial_.effort.campaign_steps) / 16;
  std::vector<ops::AxisValues> shapes;
  for (const cases::Case& fresh : fresh_) {
    if (FitsWhole(fresh.axes) && std::ranges::find(shapes, fresh.axes) == shapes.end())
      shapes.push_back(fresh.axes);
  }
  std::ranges::stable_sort(shapes, std::ranges::greater{}, [&](const ops::AxisValues& axes) {
    return cases::TotalElements(trial_.instance, axes);
  });
  std::vector<Task> planned;
  double total = 0;
  std::size_t tried = 0;
  for (const ops::AxisValues& axes : shapes) {
    const double cost = StepsFor(axes) * static_cast<double>(kRecipes.size());
    if (tried == kShapes || total + cost > budget) continue;
    total += cost;
    ++tried;
    for (const std::string_view name : kRecipes) {
      const cases::Recipe& recipe = *cases::FindRecipe(name);
      if (!cases::Applies(recipe, trial_.instance)) continue;
      planned.push_back(
          TaskFor(cases::MakeCase(trial_.instance, recipe, axes,
                                  DeriveSeed(trial_.seed, "rare") + planned.size(), "rare"),
                  "rare"));
    }
  }
  return planned;
}

}  // namespace assay::campaign
