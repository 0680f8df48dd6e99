// Waves that stretch one axis: long sums, many blocks, hot rows, counters that wrap.
#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "ops/properties.h"
#include "validator/campaign/campaign.h"
#include "validator/cases/profiles.h"
#include "validator/cases/recipes.h"
#include "validator/cases/shapes.h"

namespace assay::campaign {
namespace {

bool IsOf(cases::InputClass input_class, const ops::Instance& instance,
          const ops::TensorSpec& spec) {
  return !spec.is_scalar && !spec.IsGenerated() &&
         cases::ClassOf(spec, instance.TypeOf(spec)) == input_class;
}

/// What looks a place up along the axis looks at the last one.
void LookAtTheEnd(const ops::Instance& instance, std::string_view axis, cases::Case& value) {
  for (const ops::TensorSpec& spec : instance.op.inputs) {
    if (IsOf(cases::InputClass::kIndex, instance, spec) && spec.domain.of == axis)
      value.profiles[spec.name] = {.kind = "last", .parameters = {}, .literal = {}};
  }
}

/// The float inputs that are as large as the largest one.
std::vector<const ops::TensorSpec*> LargestOf(const ops::Instance& instance,
                                              const ops::AxisValues& axes) {
  const auto complete = ops::ResolveAxes(instance.op, axes);
  const auto size = [&](const ops::TensorSpec& spec) -> std::int64_t {
    if (!complete || !IsOf(cases::InputClass::kFloat, instance, spec)) return 0;
    const auto shape = ops::ResolveShape(spec, *complete);
    return shape ? ElementCount(*shape).value_or(0) : 0;
  };
  std::int64_t most = 1;
  for (const ops::TensorSpec& spec : instance.op.inputs) most = std::max(most, size(spec));
  std::vector<const ops::TensorSpec*> largest;
  for (const ops::TensorSpec& spec : instance.op.inputs) {
    if (size(spec) == most) largest.push_back(&spec);
  }
  return largest;
}

// The largest of the inputs far above their spread, the others plain: weights that are as large would
// hide how far a deviation from the mean is off. What is lost between E[x^2] and the mean's square grows
// by the square of that distance, what any sum may lose by itself. In 16 bits this leaves so few values
// that their roundings do not count as independent, and hides it: there, rows just past a constant are
// rippled instead (RippledRows).
cases::Case HighWhereLarge(const ops::Instance& instance, const ops::AxisValues& axes,
                           std::uint64_t seed) {
  cases::Case value = cases::MakeCase(instance, *cases::FindRecipe("plain"), axes, seed, "long");
  for (const ops::TensorSpec* const spec : LargestOf(instance, axes)) {
    const double offset = std::min(4096.0, 0.35 / UnitRoundoff(instance.TypeOf(*spec)));
    value.profiles[spec->name] = {
        .kind = "high", .parameters = {{"offset", offset}}, .literal = {}};
  }
  return value;
}

// In f16 rows of some hundreds, so high that neighbours are as far apart as their spread: more of it than in long
// rows is lost between E[x^2] and the mean's square of a few, as each lane has. Coarser types round that away.
std::vector<cases::Case> HighRows(const ops::Instance& instance,
                                  const std::function<bool(const ops::AxisValues&)>& affordable,
                                  std::uint64_t seed) {
  constexpr std::array<std::int64_t, 3> kRows = {64, 16, 4};
  constexpr double kNeighbours = 1.7;  // Of values at 1 / unit roundoff, apart by 1 and by 2.
  std::vector<cases::Case> rows;
  ops::AxisValues few;
  for (const ops::Axis& axis : instance.op.axes) few[axis.name] = kRows.front();
  const auto complete = cases::SolveAxes(instance.op, {}, few);
  if (!complete) return rows;
  const auto largest = LargestOf(instance, *complete);
  if (largest.empty() || instance.TypeOf(*largest.front()) != DType::kF16) return rows;
  const ops::Axis* const along = instance.op.FindAxis(largest.front()->shape.back().text());
  if (along == nullptr || along->kind != ops::Axis::Kind::kVariable) return rows;
  for (const std::int64_t length : {72, 392, 776}) {
    Result<ops::AxisValues> axes = ops::AxisValues{};
    for (const std::int64_t others : kRows) {
      for (auto& [name, extent] : few) extent = others;
      axes = cases::SolveNear(instance.op, along->name, length, few);
      if (axes && affordable(*axes)) break;
    }
    if (!axes || !affordable(*axes)) continue;
    cases::Case value =
        cases::MakeCase(instance, *cases::FindRecipe("plain"), *axes, seed + rows.size(), "long");
    for (const ops::TensorSpec* const spec : LargestOf(instance, *axes)) {
      value.profiles[spec->name] = {
          .kind = "high",
          .parameters = {{"offset", kNeighbours / UnitRoundoff(DType::kF16)}},
          .literal = {}};
    }
    rows.push_back(std::move(value));
  }
  return rows;
}

// One index after the other for many places: each is the hot one, and its terms are neighbours. Values
// of one sign, so that no term that is left out is made up for by another; nothing without indices.
std::optional<cases::Case> OneIndexAfterTheOther(const ops::Instance& instance,
                                                 const ops::AxisValues& axes, std::uint64_t seed) {
  cases::Case value = cases::MakeCase(instance, *cases::FindRecipe("biased"), axes, seed, "long");
  bool any = false;
  for (const ops::TensorSpec& spec : instance.op.inputs) {
    if (!IsOf(cases::InputClass::kIndex, instance, spec)) continue;
    value.profiles[spec.name] = {.kind = "sorted", .parameters = {}, .literal = {}};
    any = true;
  }
  return any ? std::optional(value) : std::nullopt;
}

}  // namespace

// One axis as long as the budget allows, the others small: long sums, many blocks, hot rows; rows
// whose mean lies far above their spread, which one pass over them loses; and one index after the
// other for hundreds of places, so that each of them is the hot one.
std::vector<Task> Campaign::Long() {
  std::vector<Task> planned;
  std::vector<ops::AxisValues> shapes;
  const std::uint64_t seed = DeriveSeed(trial_.seed, "long");
  for (const ops::Axis& axis : trial_.instance.op.axes) {
    if (axis.kind != ops::Axis::Kind::kVariable) continue;
    ops::AxisValues small;
    for (const ops::Axis& other : trial_.instance.op.axes)
      small[other.name] = other.name == axis.name ? axis.min : 4;
    // The largest power of two, less one, that fits.
    std::optional<ops::AxisValues> longest;
    for (std::int64_t value = 64; value <= std::min<std::int64_t>(axis.max, 1 << 24); value *= 2) {
      const auto solved = cases::SolveNear(trial_.instance.op, axis.name, value - 1, small);
      if (!solved || cases::TotalElements(trial_.instance, *solved) > trial_.effort.long_elements)
        break;
      if (StepsFor(*solved) > static_cast<double>(trial_.effort.campaign_steps) / 160) break;
      longest = *solved;
    }
    if (!longest) {
      harvest_.ledger.Planned("long");
      harvest_.ledger.LeaveOut("long", "no long extent fits the budget", axis.name);
      continue;
    }
    for (const std::string_view recipe : {"hot", "biased", "equal", "exact"}) {
      cases::Case value = cases::MakeCase(trial_.instance, *cases::FindRecipe(recipe), *longest,
                                          seed + planned.size(), "long");
      if (recipe == "exact") LookAtTheEnd(trial_.instance, axis.name, value);
      planned.push_back(TaskFor(std::move(value), "long"));
    }
    shapes.push_back(*std::move(longest));
  }
  const auto affordable = [&](const ops::AxisValues& axes) {
    return cases::TotalElements(trial_.instance, axes) <= trial_.effort.long_elements &&
           StepsFor(axes) <= static_cast<double>(trial_.effort.campaign_steps) / 160;
  };
  for (cases::Case& value : HighRows(trial_.instance, affordable, DeriveSeed(seed, "high rows")))
    planned.push_back(TaskFor(std::move(value), "long"));
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const std::uint64_t own = DeriveSeed(seed, "far") + i;
    planned.push_back(TaskFor(HighWhereLarge(trial_.instance, shapes[i], own), "long"));
    if (auto one_by_one = OneIndexAfterTheOther(trial_.instance, shapes[i], own))
      planned.push_back(TaskFor(*std::move(one_by_one), "long"));
  }
  std::ranges::move(Banded(), std::back_inserter(planned));
  return planned;
}

// Rows just past a constant of the program, one value each and a few just above it. What honest sums of so
// few values may lose grows by their number, what one pass over them loses hardly does: so not
// where rows are as long as can be, but where a kernel may begin to go another way.
std::vector<Task> Campaign::RippledRows(std::span<const std::int64_t> constants) {
  constexpr std::int64_t kShortest = 256, kLongest = 1 << 13, kRows = 24, kPast = 8;
  constexpr std::size_t kMost = 4;
  std::vector<Task> planned;
  const ops::OpSpec& op = trial_.instance.op;
  std::set<std::int64_t> lengths;
  for (const std::int64_t constant : constants) {
    if (constant >= kShortest && constant <= kLongest)
      lengths.insert(constant / kPast * kPast + kPast);
  }
  ops::AxisValues few;
  for (const ops::Axis& axis : op.axes) few[axis.name] = kRows;
  const auto complete = cases::SolveAxes(op, {}, few);
  if (!complete) return planned;
  const auto largest = LargestOf(trial_.instance, *complete);
  if (largest.empty() || SizeOf(trial_.instance.TypeOf(*largest.front())) != 2) return planned;
  const ops::Axis* const along = op.FindAxis(largest.front()->shape.back().text());
  if (along == nullptr || along->kind != ops::Axis::Kind::kVariable) return planned;
  // The longest first: most kernels hold short rows in registers.
  for (auto length = lengths.rbegin(); length != lengths.rend() && planned.size() < kMost;
       ++length) {
    const auto axes = cases::SolveNear(op, along->name, *length, few);
    if (!axes || cases::TotalElements(trial_.instance, *axes) > trial_.effort.long_elements ||
        StepsFor(*axes) > static_cast<double>(trial_.effort.campaign_steps) / 160)
      continue;
    cases::Case value =
        cases::MakeCase(trial_.instance, *cases::FindRecipe("plain"), *axes,
                        DeriveSeed(trial_.seed, "rippled") + planned.size(), "aimed");
    for (const ops::TensorSpec* const spec : LargestOf(trial_.instance, *axes))
      value.profiles[spec->name] = {.kind = "rippled", .parameters = {}, .literal = {}};
    planned.push_back(TaskFor(std::move(value), "aimed"));
  }
  return planned;
}

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
  if (length > kMany)
    parameters["rest"] = 0.25 * static_cast<double>(kMany) / static_cast<double>(length);
  cases::Case value = cases::MakeCase(trial_.instance, *cases::FindRecipe("biased"),
                                      std::move(axes), seed, std::move(origin));
  bool late = false;
  for (const ops::TensorSpec& spec : trial_.instance.op.inputs) {
    if (!IsOf(cases::InputClass::kFloat, trial_.instance, spec)) continue;
    const auto dimension = ops::DimensionOf(spec, axis.name);
    if (!dimension) continue;
    const std::size_t behind = spec.shape.size() - 1 - *dimension;
    if (behind > 1) continue;
    late = true;
    value.profiles[spec.name] = {
        .kind = behind == 0 ? "late_maximum" : "late_row", .parameters = parameters, .literal = {}};
  }
  LookAtTheEnd(trial_.instance, axis.name, value);
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

// One axis as long as the op allows, or as long as is affordable, the others as short as they can
// be: counters of 16 bits, tables of a fixed number of tiles, indices of classes far up.
std::vector<Task> Campaign::Longest() {
  std::vector<Task> planned;
  const std::int64_t most = 4 * trial_.effort.long_elements + 64;
  for (const ops::Axis& axis : trial_.instance.op.axes) {
    if (axis.kind != ops::Axis::Kind::kVariable) continue;
    ops::AxisValues small;
    for (const ops::Axis& other : trial_.instance.op.axes) small[other.name] = other.min;
    const auto fits = [&](const Result<ops::AxisValues>& axes) {
      return axes && cases::TotalElements(trial_.instance, *axes) <= most &&
             StepsFor(*axes) <= static_cast<double>(trial_.effort.campaign_steps) / 160;
    };
    std::int64_t length = std::min<std::int64_t>(axis.max, most);
    auto solved = cases::SolveNear(trial_.instance.op, axis.name, length, small);
    constexpr std::int64_t kShort = 256;
    while (!fits(solved) && length > kShort) {
      length /= 2;
      solved = cases::SolveNear(trial_.instance.op, axis.name, length, small);
    }
    if (!fits(solved)) {
      harvest_.ledger.Planned("long");
      harvest_.ledger.LeaveOut("long", "no long extent fits the budget", axis.name);
      continue;
    }
    // Ordinary values: what is rounded too early shows after many additions only.
    if (StepsFor(*solved) <= static_cast<double>(trial_.effort.campaign_steps) / 320) {
      planned.push_back(TaskFor(
          cases::MakeCase(trial_.instance, *cases::FindRecipe("biased"), *solved,
                          DeriveSeed(trial_.seed, "longest") + 100 + planned.size(), "long"),
          "long"));
    }
    cases::Case value =
        cases::MakeCase(trial_.instance, *cases::FindRecipe("exact"), *solved,
                        DeriveSeed(trial_.seed, "longest") + planned.size(), "long");
    for (const ops::TensorSpec& spec : trial_.instance.op.inputs) {
      if (!spec.is_scalar && !spec.IsGenerated() &&
          cases::ClassOf(spec, trial_.instance.TypeOf(spec)) == cases::InputClass::kIndex)
        value.profiles[spec.name] = {.kind = "last", .parameters = {}, .literal = {}};
    }
    planned.push_back(TaskFor(std::move(value), "long"));
  }
  return planned;
}

}  // namespace assay::campaign
