// Waves of cases that ran before, again in other surroundings: schedules, garbage, calls before them, alignments.
#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <set>
#include <utility>

#include "base/rng.h"
#include "ops/properties.h"
#include "validator/campaign/blocks.h"
#include "validator/campaign/campaign.h"
#include "validator/campaign/repetitions.h"
#include "validator/cases/profiles.h"
#include "validator/cases/recipes.h"
#include "validator/cases/shapes.h"

namespace assay::campaign {
namespace {

/// Those that a case has an extent of.
std::vector<std::string> VariableAxes(const ops::OpSpec& op) {
  std::vector<std::string> names;
  for (const ops::Axis& axis : op.axes) {
    if (axis.kind == ops::Axis::Kind::kVariable) names.push_back(axis.name);
  }
  return names;
}

/// Where some inputs absorb and others are too large to (MakeAffordable drew these anew), the large ones are one
/// value everywhere: what cancels in the small ones then cancels in products with them as well, and each order
/// of adding makes another sum. As they are where nothing absorbs.
Task WithOthersConstant(const ops::OpSpec& op, Task task) {
  auto& profiles = task.probe.case_.profiles;
  if (std::ranges::none_of(profiles, [](const auto& p) { return p.second.kind == "absorbing"; }))
    return task;
  for (auto& [name, profile] : profiles) {
    const ops::TensorSpec* const spec = op.FindInput(name);
    if (profile.kind == "absorbing") profile.parameters = {{"along", 0}, {"wholly", 1}};
    if (profile.kind == "biased" && spec != nullptr && !spec->is_scalar)
      profile = {.kind = "constant", .parameters = {}, .literal = {}};
  }
  return task;
}

}  // namespace

// Cases that ran, the smallest first, without those that prove little or cost much. Where extents are so
// large that none ran whole, the smallest of the slices: larger ones show no more blocks, and of values that
// look at places, which large tensors cannot have, less.
std::vector<cases::Case> Campaign::Pool() const {
  const auto by_size = [&](const cases::Case& value) {
    return cases::TotalElements(trial_.instance, value.axes);
  };
  if (tried_.empty()) {
    constexpr std::size_t kFew = 8;
    std::vector<cases::Case> slices = sliced_;
    std::ranges::stable_sort(slices, {}, by_size);
    slices.resize(std::min(slices.size(), std::max(kFew, slices.size() / 4)));
    // A few have to show what they can: none of zeros.
    for (std::size_t i = 0; i < slices.size(); ++i)
      slices[i] =
          cases::MakeCase(trial_.instance, *cases::FindRecipe(i % 2 == 0 ? "plain" : "exact"),
                          slices[i].axes, slices[i].seed + i, "random");
    return slices;
  }
  std::vector<cases::Case> pool = tried_;
  const std::int64_t most =
      std::min(trial_.effort.whole_elements,
               std::max<std::int64_t>(20'000, 3 * SmallestElements(trial_.instance)));
  std::erase_if(
      pool, [&](const cases::Case& value) { return by_size(value) > most || by_size(value) < 8; });
  std::ranges::stable_sort(pool, {}, by_size);
  return pool;
}

// Calls before a slice would be whole ones: none where they leave nothing behind.
std::vector<cases::Case> Campaign::CheapEnoughWhole(std::vector<cases::Case> pool) {
  if (pool.empty() || !MayKeepState()) return {};
  const cases::Case first = pool.front();
  std::erase_if(pool, [&](const cases::Case& value) {
    return WholeStepsFor(value.axes) > 2 * kAffordableSteps;
  });
  if (pool.empty()) {
    harvest_.ledger.Planned("repeated calls");
    LeaveOut(TaskFor(first, "repeated calls"), "whole calls take too long", harvest_);
  }
  return pool;
}

namespace {

/// Long ones, and such that are several of the parts which a plan cuts an axis into: three parts are the fewest whose order is
/// seen.
std::vector<std::int64_t> LengthsForOrders(const ops::LaunchPlan& plan, const ops::Axis& axis) {
  constexpr std::int64_t kParts = 4, kRest = 5, kMostLong = std::int64_t{1} << 18;
  constexpr std::size_t kMost = 4;
  std::vector<std::int64_t> lengths = {1036, 16396};
  for (const std::int64_t constant : cases::ConstantsOf(plan)) {
    const std::int64_t length = kParts * constant + kRest;
    if (length > lengths.back() && length <= std::min(axis.max, kMostLong) &&
        lengths.size() < kMost)
      lengths.push_back(length);
  }
  return lengths;
}

/// Values of which other orders make other sums, along that axis: of one input, for beside others that differ from place to
/// place a large one and its opposite do not cancel.
cases::Case Absorbing(const ops::Instance& instance, const ops::AxisValues& shape,
                      std::string_view axis, std::uint64_t seed) {
  cases::Case value = cases::MakeCase(instance, cases::OrderRecipe(), shape, seed, "orders");
  bool any = false;
  for (const ops::TensorSpec& spec : instance.op.inputs) {
    const auto profile = value.profiles.find(spec.name);
    const auto dimension = ops::DimensionOf(spec, axis);
    if (profile == value.profiles.end() || profile->second.kind != "absorbing" || !dimension)
      continue;
    const std::size_t behind = spec.shape.size() - 1 - *dimension;
    if (std::exchange(any, true))
      profile->second = {.kind = "constant", .parameters = {}, .literal = {}};
    else if (behind < 2)
      profile->second.parameters = {{"along", behind == 0 ? 1 : 2}, {"wholly", 1}};
  }
  return value;
}

}  // namespace

// One axis so long, or as long as it may be, and with it as many results as are affordable: an f32 sum
// in another order tips the rounding of one 16-bit result among thousands.
std::optional<ops::AxisValues> Campaign::ManyResults(const ops::Axis& axis,
                                                     std::int64_t length) const {
  if (axis.kind != ops::Axis::Kind::kVariable) return std::nullopt;
  for (std::int64_t others = 512; others > 0; others /= 2) {
    ops::AxisValues wanted;
    for (const ops::Axis& other : trial_.instance.op.axes) wanted[other.name] = others;
    const auto axes =
        cases::SolveNear(trial_.instance.op, axis.name, std::min(length, axis.max), wanted);
    if (axes && cases::TotalElements(trial_.instance, *axes) <= trial_.effort.long_elements &&
        StepsFor(*axes) <= static_cast<double>(trial_.effort.campaign_steps) / 75)
      return *axes;
  }
  return std::nullopt;
}

// Who looks back at blocks before it, a warp's width at a time, errs where none of so many has come to its end: it takes
// more of them than small cases have, and all at once.
std::vector<ops::AxisValues> Campaign::ManyBlocksAtOnce() const {
  constexpr std::uint64_t kMany = 200, kTooFew = 64;
  constexpr std::int64_t kBeside = 8, kBesideOfSums = 48;
  constexpr std::size_t kMost = 2;
  const ops::OpSpec& op = trial_.instance.op;
  std::vector<ops::AxisValues> shapes;
  for (const ops::Axis& axis : op.axes) {
    if (axis.kind != ops::Axis::Kind::kVariable) continue;
    ops::AxisValues beside;
    for (const ops::Axis& other : op.axes)
      beside[other.name] =
          std::min(other.max, ops::IsOfOutputs(op, other.name) ? kBeside : kBesideOfSums);
    const auto shape_of = [&](std::int64_t length) {
      return cases::SolveNear(op, axis.name, length, beside);
    };
    for (const ops::KernelPlan& kernel : trial_.plan.kernels) {
      if (!MayWait(kernel)) continue;
      const auto blocks_at = [&](std::int64_t length) -> std::uint64_t {
        const auto axes = shape_of(length);
        return axes ? BlocksOf(op, kernel, *axes) : 0;
      };
      std::int64_t few = axis.min, many = axis.max;
      if (blocks_at(few) >= kTooFew || blocks_at(many) < kTooFew) continue;
      while (few + 1 < many) {
        const std::int64_t middle = few + (many - few) / 2;
        (blocks_at(middle) < kMany ? few : many) = middle;
      }
      const auto axes = shape_of(many);
      if (axes && shapes.size() < kMost && std::ranges::find(shapes, *axes) == shapes.end())
        shapes.push_back(*axes);
    }
  }
  return shapes;
}

// The same cases under other schedules, with other poison, misaligned, after other calls, with
// perturbed approximations.
std::vector<Task> Campaign::Surroundings() {
  std::vector<Task> planned;
  Rng rng(DeriveSeed(trial_.seed, "surroundings"));
  const std::vector<cases::Case> pool = Pool();
  if (pool.empty()) return planned;
  const auto draw = [&]() -> const cases::Case& { return pool[rng.Below(pool.size())]; };
  // Where blocks wait for each other, it takes many of them for an order to matter.
  const auto draw_large = [&]() -> const cases::Case& {
    return pool[pool.size() - 1 - rng.Below(1 + pool.size() / 8)];
  };
  // What is added up lies along some axis, often the last: each in turn is the long one, as long as is
  // affordable several times, so that parts of it are many.
  const std::vector<std::string> variable = VariableAxes(trial_.instance.op);
  const auto axis_of = [&](std::size_t turn) {
    return variable.empty() ? "" : variable[variable.size() - 1 - turn % variable.size()];
  };
  const auto draw_along = [&](std::size_t turn) -> const cases::Case& {
    if (variable.empty()) return pool.back();
    const std::string axis = axis_of(turn);
    const cases::Case* longest = &pool.back();
    for (const cases::Case& value : tried_) {
      const bool affordable =
          cases::TotalElements(trial_.instance, value.axes) <= trial_.effort.long_elements &&
          StepsFor(value.axes) <= static_cast<double>(trial_.effort.campaign_steps) / 300;
      if (affordable && value.axes.at(axis) > longest->axes.at(axis)) longest = &value;
    }
    return *longest;
  };
  const auto absorbing_along = [&](std::size_t turn, std::uint64_t seed) {
    return Absorbing(trial_.instance, draw_along(turn).axes, axis_of(turn), seed);
  };
  const std::size_t rounds = trial_.effort.schedules;
  const bool orders_show = schedule_matters_ && ops::IsDeterministic(trial_.instance.op);
  using Policy = Schedule::Policy;
  constexpr Policy kPolicies[] = {Policy::kReversed, Policy::kPermuted, Policy::kPriorities};
  for (std::size_t i = 0; i < rounds * (schedule_matters_ ? 3 : 1); ++i) {
    Task one = TaskFor(schedule_matters_ && i % 2 == 0 ? draw_large() : draw(), "schedules");
    // Many kernels round to fewer bits at their end, and hide which sums they made.
    if (orders_show && i % 8 == 2)
      one = WithOthersConstant(
          trial_.instance.op,
          TaskFor(cases::MakeCase(trial_.instance, cases::OrderRecipe(), one.probe.case_.axes,
                                  rng.Next() % 1'000'000, "orders"),
                  "schedules"));
    if (orders_show && i % 8 == 6)
      one = TaskFor(absorbing_along(i / 8, rng.Next() % 1'000'000), "schedules");
    // And sums of ordinary values differ where parts of cancelling ones are exact.
    if (orders_show && i % 8 == 4)
      one = TaskFor(cases::MakeCase(trial_.instance, *cases::FindRecipe("plain"),
                                    draw_along(i / 8).axes, rng.Next() % 1'000'000, "orders"),
                    "schedules");
    one.probe.schedule = {.policy = kPolicies[i % 3], .seed = rng.Next() % 1'000'000};
    planned.push_back(std::move(one));
  }
  for (std::size_t i = 0; orders_show && i < trial_.instance.op.axes.size(); ++i) {
    const ops::Axis& axis = trial_.instance.op.axes[i];
    for (const std::int64_t length : LengthsForOrders(trial_.plan, axis)) {
      const auto axes = ManyResults(axis, length);
      if (!axes) continue;
      const auto add = [&](cases::Case value, Policy policy) {
        Task one = TaskFor(std::move(value), "schedules");
        one.probe.schedule = {.policy = policy, .seed = rng.Next() % 1'000'000};
        planned.push_back(std::move(one));
      };
      for (const Policy policy : {Policy::kPermuted, Policy::kPriorities}) {
        add(cases::MakeCase(trial_.instance, *cases::FindRecipe("plain"), *axes,
                            rng.Next() % 1'000'000, "orders"),
            policy);
        // Where another order is rare, it has to show in whatever it is that it happens to.
        if (ops::MayBeReducedOver(trial_.instance.op, axis.name))
          add(Absorbing(trial_.instance, *axes, axis.name, rng.Next() % 1'000'000), policy);
        // As below, of sums of little more than one.
        if (IsOfRows(axis.name))
          add(cases::MakeCase(trial_.instance, *cases::FindRecipe("late"), *axes,
                              rng.Next() % 1'000'000, "orders"),
              policy);
      }
    }
  }
  const bool look_back = flags_are_read_ && trial_.effort.huge_shapes > 0;
  for (const ops::AxisValues& axes :
       look_back ? ManyBlocksAtOnce() : std::vector<ops::AxisValues>()) {
    for (int i = 0; i < 2; ++i) {
      Task one = SliceOf(axes, "schedules", rng.Next() % 1'000'000);
      one.wants.part_steps = one.wants.slice_steps = 2 * kMostSliceSteps;
      one.sure = true;
      one.probe.schedule = {.policy = Policy::kPermuted, .seed = rng.Next() % 1'000'000};
      planned.push_back(std::move(one));
    }
  }
  // Reads that nothing orders after a write may miss it.
  for (std::size_t i = 0; i < (flags_are_read_ ? rounds : 0); ++i) {
    Task one = TaskFor(i % 3 == 2 ? draw() : draw_large(), "old values");
    one.probe.schedule = {.policy = kPolicies[(i + 1) % 3],
                          .seed = rng.Next() % 1'000'000,
                          .stale = i % 2 == 0 ? 100u : 50u};
    planned.push_back(std::move(one));
  }
  // No small integers: their sums are the same in any order.
  if (orders_show) {
    const std::size_t turns = std::max((rounds + 1) / 2, trial_.instance.op.axes.size());
    const auto add = [&](cases::Case value, bool constant = false) {
      Task one = TaskFor(std::move(value), "orders");
      if (constant) one = WithOthersConstant(trial_.instance.op, std::move(one));
      one.wants.orders = true;
      planned.push_back(std::move(one));
    };
    const auto made = [&](const cases::Recipe& recipe, const cases::Case& shape) {
      return cases::MakeCase(trial_.instance, recipe, shape.axes, rng.Next() % 1'000'000, "random");
    };
    for (std::size_t i = 0; i < turns; ++i) {
      add(made(*cases::FindRecipe("plain"), draw_large()));
      add(made(cases::OrderRecipe(), draw_large()), /*constant=*/true);
      add(absorbing_along(i, rng.Next() % 1'000'000));
      add(made(*cases::FindRecipe("plain"), draw_along(i)));
      // A logarithm hides the last digits of what it is taken of, but for a sum of little more than one.
      if (IsOfRows(axis_of(i))) add(made(*cases::FindRecipe("late"), draw_along(i)));
    }
  }
  constexpr std::uint8_t kPoisons[] = {0x00, 0x7f, 0x3c, 0x80};
  for (std::size_t i = 0; i < rounds; ++i) {
    Task one = TaskFor(draw(), "poison");
    one.probe.poison = kPoisons[i % std::size(kPoisons)];
    one.wants.determinism = false;
    planned.push_back(std::move(one));
  }
  // What blocks hand on lies along some axis: old values are looked for along each.
  for (std::size_t i = 0; i < (flags_are_read_ ? trial_.instance.op.axes.size() : 0); ++i) {
    Task one = TaskFor(draw_along(i), "old values");
    one.probe.schedule = {
        .policy = kPolicies[i % 3], .seed = DeriveSeed(trial_.seed, "along") + i, .stale = 100};
    planned.push_back(std::move(one));
  }
  // Twice as many: where values are small integers, or a scalar bypasses the function, its error
  // does not show.
  for (std::size_t i = 0; i < 2 * rounds; ++i) {
    Task one = TaskFor(draw(), "perturbed");
    one.probe.perturbation_seed = 1 + rng.Next() % 1'000'000;
    one.wants.determinism = false;
    planned.push_back(std::move(one));
  }
  if (tried_.empty()) {
    AddRepeatedCalls(CheapEnoughWhole(pool), 3 * rounds, rng, planned);
    std::erase_if(planned, [&](const Task& one) {
      const double calls = static_cast<double>(1 + one.probe.prelude.size());
      if (one.probe.prelude.empty() ||
          calls * WholeStepsFor(one.probe.case_.axes) <= 4 * kAffordableSteps)
        return false;
      harvest_.ledger.Planned(one.purpose);
      LeaveOut(one, "so many whole calls take too long", harvest_);
      return true;
    });
  } else {
    AddRepeatedCalls(pool, 3 * rounds, rng, planned);
  }
  // What vector types need is guaranteed; more than that only where an allocator happens to give
  // it.
  const bool any = ops::HasProperty(trial_.instance.op, "any_alignment");
  constexpr std::uint32_t kVectors[] = {16, 48, 112, 240};
  constexpr std::uint32_t kElements[] = {8, 2, 4, 6};
  for (std::size_t i = 0; i < 2 * rounds; ++i) {
    // A large one for the loop over whole vectors; the others say as much of heads and tails for less.
    Task one = TaskFor(i == 1 ? draw_large() : draw(), "alignments");
    one.probe.misalign = any ? kElements[i % 4] : kVectors[i % 4];
    one.wants.determinism = false;
    planned.push_back(std::move(one));
  }
  for (Task& one : planned) {
    if (one.probe.schedule.policy != Policy::kPermuted ||
        OrderForThatMany(one.probe.case_.axes) == Policy::kPermuted)
      continue;
    harvest_.ledger.Planned(one.purpose);
    LeaveOut(one,
             "so many blocks that wait for each other take too long in random turns; "
             "the case ran under priorities",
             harvest_);
    one.probe.schedule.policy = Policy::kPriorities;
  }
  return planned;
}

// Floats that are added as they come, by atomics or under a lock, give other sums in another order, but a result that is made of few of them may
// round to the same bits: so more results of the same sums.
std::vector<Task> Campaign::HiddenSums() {
  constexpr std::size_t kMost = 2;
  const double most_steps = static_cast<double>(trial_.effort.campaign_steps) / 60;
  std::vector<Task> planned;
  std::set<ops::AxisValues> seen;
  // Of what is added up the longest first: a short one is not in parts.
  const auto length = [this](const ops::AxisValues::value_type& axis) {
    const ops::Axis* const of = trial_.instance.op.FindAxis(axis.first);
    return of != nullptr && IsAddedUp(*of) ? axis.second : 0;
  };
  const auto longest_of = [&](const ops::AxisValues& axes) {
    return std::ranges::max_element(axes, {}, length);
  };
  std::erase_if(hidden_sums_, [](const ops::AxisValues& axes) { return axes.empty(); });
  std::ranges::stable_sort(hidden_sums_, std::greater(),
                           [&](const ops::AxisValues& axes) { return length(*longest_of(axes)); });
  for (const ops::AxisValues& axes : hidden_sums_) {
    if (seen.size() >= kMost) break;
    const auto longest = longest_of(axes);
    for (std::int64_t others = 64; others > 1; others /= 2) {
      ops::AxisValues beside = axes;
      for (auto& [name, extent] : beside) extent = std::max(extent, others);
      const auto many =
          cases::SolveNear(trial_.instance.op, longest->first, longest->second, beside);
      if (!many || cases::TotalElements(trial_.instance, *many) > 4 * trial_.effort.long_elements ||
          StepsFor(*many) > most_steps)
        continue;
      if (!seen.insert(*many).second) break;
      const auto add = [&](cases::Case value) {
        Task& one = planned.emplace_back(TaskFor(std::move(value), "orders"));
        one.wants.orders = true;
      };
      const std::uint64_t seed = DeriveSeed(trial_.seed, "hidden");
      add(Absorbing(trial_.instance, *many, longest->first, seed + planned.size()));
      planned.back().sure = seen.size() == 1;
      for (const std::string_view recipe : {"plain", "late", "biased"})
        add(cases::MakeCase(trial_.instance, *cases::FindRecipe(recipe), *many,
                            seed + planned.size(), "orders"));
      break;
    }
  }
  return planned;
}

// Where blocks wait for each other and as many are there as a chip holds, each that goes on lets all
// the others look: that comes to the square of their number, which no run in order shows. Few are
// there at once under priorities.
Schedule::Policy Campaign::OrderForThatMany(const ops::AxisValues& axes) const {
  constexpr double kStepsOfALook = 16;
  const double most = static_cast<double>(trial_.effort.campaign_steps) / 75;
  double blocks = 0;
  for (const ops::KernelPlan& kernel : trial_.plan.kernels) {
    if (MayWait(kernel))
      blocks = std::max(blocks, static_cast<double>(BlocksOf(trial_.instance.op, kernel, axes)));
  }
  return kStepsOfALook * blocks * blocks > most ? Schedule::Policy::kPriorities
                                                : Schedule::Policy::kPermuted;
}

void Campaign::AddRepeatedCalls(const std::vector<cases::Case>& pool, std::size_t count, Rng& rng,
                                std::vector<Task>& planned) const {
  if (pool.empty()) return;
  const auto draw = [&]() -> const cases::Case& { return pool[rng.Below(pool.size())]; };
  const std::span<const Repetition> repetitions = Repetitions();
  for (std::size_t i = 0; i < count; ++i) {
    const cases::Case& judged = draw();
    const cases::Case* other = &draw();
    for (int again = 0; again < 4 && other->axes == judged.axes; ++again) other = &draw();
    planned.push_back(After(repetitions[i % repetitions.size()], judged, *other, rng));
  }
}

Task Campaign::After(const Repetition& repetition, const cases::Case& judged,
                     const cases::Case& other, Rng& rng) const {
  Task one = TaskFor(judged, "repeated calls");
  one.probe = ProbeAfter(trial_.instance, repetition, judged, other, rng);
  one.wants.determinism = false;
  for (const cases::Case& before : one.probe.prelude)
    one.wants.max_steps += TaskFor(before, "").wants.max_steps;
  return one;
}

}  // namespace assay::campaign
