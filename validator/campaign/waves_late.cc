// Values of which the last along an axis outweigh all before: wave Late, along constant axes, and cases of wave Aimed, just
// past constants of program and plan.
#include <algorithm>
#include <iterator>
#include <numeric>
#include <optional>
#include <set>
#include <string>
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

// In an average over thousands, nobody sees a few that are missing: so what comes last weighs more than
// all before. What many numbers may lose when they are added grows with their number, and would hide that:
// so they are the smaller, the more there are.
std::optional<cases::Case> Campaign::LateAlong(const ops::Axis& axis, ops::AxisValues axes,
                                               std::string origin, std::uint64_t seed) const {
  constexpr double kPeak = 100;
  constexpr std::int64_t kMany = 1 << 14;
  const auto given = axes.find(axis.name);  // Not where it is constant.
  const std::int64_t length = given == axes.end() ? axis.value : given->second;
  decltype(cases::Profile::parameters) parameters = {{"peak", kPeak}};
  // What honest sums may err by is less than what the last weighs, also where values come again and again, so that it grows
  // as the square of the length.
  constexpr double kSquare = 1 << 28;
  if (length > kMany) {
    const auto many = static_cast<double>(length);
    parameters["rest"] =
        std::min(0.25 * static_cast<double>(kMany) / many, kSquare / (many * many));
  }
  cases::Case value = cases::MakeCase(trial_.instance, *cases::FindRecipe("biased"),
                                      std::move(axes), seed, std::move(origin));
  bool late = false;
  for (const ops::TensorSpec& spec : trial_.instance.op.inputs) {
    if (!cases::IsOf(cases::InputClass::kFloat, trial_.instance, spec)) continue;
    const auto dimension = ops::DimensionOf(spec, axis.name);
    if (!dimension) continue;
    const std::size_t behind = spec.shape.size() - 1 - *dimension;
    if (behind > 1) continue;
    late = true;
    value.profiles[spec.name] = {
        .kind = behind == 0 ? "late_maximum" : "late_row", .parameters = parameters, .literal = {}};
  }
  cases::LookAtTheEnd(trial_.instance, axis.name, value);
  return late ? std::optional(std::move(value)) : std::nullopt;
}

// Each axis just past a constant of the program, and past its double, where a loop may begin its next turn, with
// values of which the last outweighs all before: what a kernel leaves out from there on is then nearly all
// of the result, not a thousandth of it. Beside the shortest of all others, then, where there are units that a kernel
// may want to be whole, with whole ones along all axes: an odd number of them, for they are shared among threads,
// warps and stages.
std::vector<Task> Campaign::LatePast(const ProgramConstants& constants) {
  constexpr std::int64_t kShortest = 64, kPast = 8;
  constexpr std::int64_t kMostWhole = 128;  // Along the axes beside.
  const std::int64_t most_elements = 2 * trial_.effort.long_elements + (1 << 16);
  const ops::OpSpec& op = trial_.instance.op;
  const std::int64_t whole = CommonMultiple(constants.units, kMostWhole);
  std::set<std::int64_t, std::greater<>> lengths, whole_lengths;
  for (const std::int64_t constant : constants.integers) {
    if (constant < kShortest || constant > most_elements) continue;
    for (const std::int64_t times : {1, 2})
      lengths.insert(times * constant / kPast * kPast + kPast);
    for (const std::int64_t unit : constants.units)
      whole_lengths.insert(OddMultiplePast(constant, std::lcm(unit, kPast)));
  }
  std::vector<Task> planned;
  for (const ops::Axis& axis : op.axes) {
    if (axis.kind != ops::Axis::Kind::kVariable || !ops::MayBeReducedOver(op, axis.name)) continue;
    ops::AxisValues shortest, whole_ones;
    for (const ops::Axis& other : op.axes) {
      shortest[other.name] = other.min;
      whole_ones[other.name] = std::max(other.min, whole);
    }
    AddLateAlong(axis, lengths, shortest, planned);
    if (whole > 1) AddLateAlong(axis, whole_lengths, whole_ones, planned);
  }
  return planned;
}

void Campaign::AddLateAlong(const ops::Axis& axis,
                            const std::set<std::int64_t, std::greater<>>& lengths,
                            const ops::AxisValues& beside, std::vector<Task>& planned) const {
  constexpr std::size_t kMost = 4;
  constexpr std::size_t kMostSlices = 2;  // Of these, in part, where all of it takes too long.
  const auto most_steps = static_cast<double>(trial_.effort.campaign_steps) / 16;
  const std::int64_t most_elements = 2 * trial_.effort.long_elements + (1 << 16);
  std::size_t count = 0, slices = 0;
  // The longest first: what is short shows among ordinary values as well.
  for (const std::int64_t length : lengths) {
    if (count >= kMost) break;
    const auto axes = cases::SolveNear(trial_.instance.op, axis.name, length, beside);
    if (!axes || axes->at(axis.name) < length ||
        cases::TotalElements(trial_.instance, *axes) > most_elements)
      continue;
    const bool in_part = StepsFor(*axes) > most_steps;
    if (in_part && (slices >= kMostSlices || BlockStepsFor(*axes) > most_steps)) continue;
    auto value = LateAlong(axis, *axes, "aimed", DeriveSeed(trial_.seed, "late") + planned.size());
    if (!value) break;
    ++count;
    Task& task = planned.emplace_back(TaskFor(*std::move(value), "aimed"));
    if (!in_part) continue;
    ++slices;
    task.probe.ends_only = true;
    task.wants.part_steps = static_cast<std::uint64_t>(most_steps);
    // Values show in each block alike, and the truths of a whole that is dear would be dear too: both ends.
    task.wants.slice_steps = kValueSliceSteps;
    task.wants.least_blocks = 2;
  }
}

bool Campaign::IsAddedUp(const ops::Axis& axis) const {
  const ops::OpSpec& op = trial_.instance.op;
  const auto is_missing = [&](const ops::Axis& of) {
    return std::ranges::any_of(op.outputs, [&](const ops::TensorSpec& output) {
      return !ops::DimensionOf(output, of.name);
    });
  };
  return ops::MayBeReducedOver(op, axis.name) &&
         std::ranges::any_of(op.axes, is_missing) == is_missing(axis);
}

// The same at constants of the launch plan, which choose among kernels: just past them and past the next multiple of
// eight, beside one and beside some of all others, with each value of the flags, since a special kernel leaves out
// what its author took for impossible there; and where products are negative, below what maxima may begin with.
std::vector<Task> Campaign::LatePastThePlan() {
  constexpr std::int64_t kShortest = 64, kPast = 8;
  constexpr std::size_t kMost = 40;
  // The first ones past the largest constants along what is added up, which are the dearest, are not left out for it: what
  // is split from there on, and what a split leaves over, no shorter one shows; nor a maximum over splits that begins at 0.
  constexpr std::int64_t kSplits = 1024;
  constexpr int kMostSure = 2, kMostSureOpposed = 4;
  const double most_steps = static_cast<double>(trial_.effort.campaign_steps) / 10;
  const std::int64_t most_elements = 2 * trial_.effort.long_elements + (1 << 16);
  const ops::OpSpec& op = trial_.instance.op;
  const std::uint64_t seed = DeriveSeed(trial_.seed, "late past the plan");
  // The largest first: those of tiles are small.
  std::set<std::int64_t, std::greater<>> constants;
  for (const std::int64_t constant : cases::ConstantsOf(trial_.plan)) {
    if (constant >= kShortest && constant <= most_elements) constants.insert(constant);
  }
  std::vector<Task> planned;
  double steps = 0;
  int sure = 0, sure_opposed = 0;
  for (const std::int64_t constant : constants) {
    for (const ops::Axis& axis : op.axes) {
      if (axis.kind != ops::Axis::Kind::kVariable || !ops::MayBeReducedOver(op, axis.name))
        continue;
      for (const std::int64_t length : {constant + 1, constant / kPast * kPast + kPast}) {
        for (const std::int64_t others : {1, 3}) {
          ops::AxisValues few;
          for (const ops::Axis& other : op.axes) few[other.name] = std::max(other.min, others);
          const auto axes = cases::SolveNear(op, axis.name, length, few);
          if (!axes || axes->at(axis.name) != length ||
              cases::TotalElements(trial_.instance, *axes) > most_elements)
            continue;
          const double cost = StepsFor(*axes);
          auto late = LateAlong(axis, *axes, "aimed", seed + planned.size());
          if (!late || cost > most_steps / 3) continue;
          std::vector<Task> tasks = WithEachFlag(TaskFor(*std::move(late), "aimed"));
          const auto flags = static_cast<std::ptrdiff_t>(tasks.size());
          if (others > 1 && length == constant + 1) {
            std::ranges::move(WithEachChoice(TaskFor(
                                  cases::MakeCase(trial_.instance, *cases::FindRecipe("opposed"),
                                                  *axes, seed + planned.size(), "aimed"),
                                  "aimed")),
                              std::back_inserter(tasks));
          }
          for (Task& task : tasks) {
            if (planned.size() >= kMost || steps + cost > most_steps) continue;
            steps += cost;
            const bool is_opposed = &task - tasks.data() >= flags;
            int& so_far = is_opposed ? sure_opposed : sure;
            task.sure = constant >= kSplits && length == constant + 1 && IsAddedUp(axis) &&
                        (others == 1 || is_opposed) &&
                        so_far < (is_opposed ? kMostSureOpposed : kMostSure);
            so_far += task.sure ? 1 : 0;
            planned.push_back(std::move(task));
          }
        }
      }
    }
  }
  return planned;
}

// What ends with a constant axis, with each value of the flags. And where nothing is small, products that are all far
// below what a maximum over them may begin with, with each value of the scalars: patterns, which try that elsewhere,
// end with their share.
std::vector<Task> Campaign::Late() {
  std::vector<Task> planned;
  const std::uint64_t seed = DeriveSeed(trial_.seed, "late along constants");
  for (const ops::Axis& axis : trial_.instance.op.axes) {
    if (axis.kind == ops::Axis::Kind::kConstant &&
        ops::MayBeReducedOver(trial_.instance.op, axis.name))
      std::ranges::move(LateAlongConstant(axis, seed + planned.size()),
                        std::back_inserter(planned));
  }
  const cases::Recipe& opposed = *cases::FindRecipe("opposed");
  ops::AxisValues least;
  for (const ops::Axis& axis : trial_.instance.op.axes) least[axis.name] = axis.min;
  const auto axes = cases::SolveAxes(trial_.instance.op, {}, least);
  if (!has_small_shapes_ && axes && cases::Applies(opposed, trial_.instance))
    std::ranges::move(WithEachFlag(TaskFor(cases::MakeCase(trial_.instance, opposed, *axes,
                                                           seed + planned.size(), "value"),
                                           "opposed"),
                                   /*floats=*/true),
                      std::back_inserter(planned));
  return planned;
}

// What ends with a constant axis (a mask, a tile) shows where its last values outweigh all before: of thousands
// each other is less than narrow results round away. Beside it axes that lengthen the same tensors stay short:
// large tensors take no values that hang on places.
std::vector<Task> Campaign::LateAlongConstant(const ops::Axis& axis, std::uint64_t seed) const {
  constexpr std::int64_t kSome = 3;
  const ops::OpSpec& op = trial_.instance.op;
  const auto lengthens = [&](const ops::Axis& other) {
    return std::ranges::any_of(op.inputs, [&](const ops::TensorSpec& spec) {
      return ops::DimensionOf(spec, axis.name) && ops::DimensionOf(spec, other.name);
    });
  };
  ops::AxisValues least, beside, some;
  for (const ops::Axis& other : op.axes) {
    if (other.kind != ops::Axis::Kind::kVariable) continue;
    least[other.name] = other.min;
    some[other.name] = std::max(other.min, kSome);
    beside[other.name] = lengthens(other) ? other.min : some[other.name];
  }
  std::vector<Task> planned;
  std::set<ops::AxisValues> shapes;
  for (const ops::AxisValues& wanted : {least, beside, some}) {
    const auto axes = cases::SolveAxes(op, {}, wanted);
    if (!axes || !shapes.insert(*axes).second) continue;
    auto value = LateAlong(axis, *axes, "value", seed + shapes.size());
    if (!value) continue;
    Task task = TaskFor(*std::move(value), "late");
    // Large tensors have got other values.
    if (std::ranges::any_of(task.probe.case_.profiles, [](const auto& profile) {
          return profile.second.kind.starts_with("late");
        }))
      std::ranges::move(WithEachFlag(std::move(task)), std::back_inserter(planned));
  }
  return planned;
}

}  // namespace assay::campaign
