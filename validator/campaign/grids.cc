// Slices past what caps a grid: a persistent kernel's blocks have to go on there, and then once more.
//
// A plan says where that is: `min(ceil_div(rows, 4), 2112)` has two operands at every shape. The least
// extents are searched for at which one that is the same at all shapes is passed by the other. And where each kernel of a plan
// begins, and whether any case of it was judged.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "validator/campaign/blocks.h"
#include "validator/campaign/campaign.h"
#include "validator/cases/profiles.h"
#include "validator/cases/shapes.h"

namespace assay::campaign {
namespace {

// Caps below this are passed by ordinary cases, where there are small ones.
constexpr std::int64_t kLargeCap = 1024;
constexpr std::int64_t kSmallestCap = 2;

/// A place where a grid is the smaller, or the larger, of two numbers.
struct Kink {
  const ops::Expression* grid;
  std::size_t number;  ///< Among those of the expression.
};

/// What stands on both sides at a shape; nothing where that is not evaluated.
ops::Expression::Kink SidesAt(const ops::OpSpec& op, const Kink& kink,
                              const ops::AxisValues& variables) {
  const auto complete = ops::ResolveAxes(op, variables);
  if (!complete) return std::nullopt;
  const auto sides = kink.grid->Kinks(*complete);
  return kink.number < sides.size() ? sides[kink.number] : std::nullopt;
}

/// Where one side is a large number whatever the shape (`least` is another one), does the other pass
/// it `times` over? The cap.
std::optional<std::int64_t> CapPassed(const ops::Expression::Kink& least,
                                      const ops::Expression::Kink& now, std::int64_t times,
                                      std::int64_t least_cap) {
  if (!least || !now) return std::nullopt;
  // What has not grown yet looks like a cap of what is one.
  const auto passes = [&](std::int64_t cap, std::int64_t before, std::int64_t other,
                          std::int64_t other_before) {
    return cap == before && other != other_before && cap >= least_cap && other / times >= cap &&
           other > times * cap;
  };
  if (passes(now->second, least->second, now->first, least->first)) return now->second;
  if (passes(now->first, least->first, now->second, least->second)) return now->first;
  return std::nullopt;
}

/// The least extents at which a kernel has blocks: those of all, or with one axis or two at a number of the plan or `past` it,
/// for many a plan chooses among kernels by lengths. Those of all where there are none such.
ops::AxisValues LeastWithBlocks(const ops::OpSpec& op, const ops::KernelPlan& kernel,
                                std::span<const std::int64_t> constants,
                                const ops::AxisValues& least, std::int64_t past) {
  if (HasBlocks(op, kernel, least)) return least;
  std::vector<ops::AxisValues> shapes;  // With one axis there.
  for (const std::int64_t constant : constants) {
    for (const ops::Axis& axis : op.axes) {
      if (axis.kind != ops::Axis::Kind::kVariable) continue;
      for (const std::int64_t length : {constant, constant + past}) {
        auto axes = cases::SolveNear(op, axis.name, length, least);
        if (axes && axes->at(axis.name) == length) shapes.push_back(*std::move(axes));
      }
    }
  }
  for (const ops::AxisValues& axes : shapes) {
    if (HasBlocks(op, kernel, axes)) return axes;
  }
  // A plan may name hundreds of numbers.
  constexpr std::size_t kMostInPairs = 128;
  if (shapes.size() > kMostInPairs) shapes.erase(shapes.begin() + kMostInPairs, shapes.end());
  for (const ops::AxisValues& one : shapes) {
    for (const ops::AxisValues& other : shapes) {
      ops::AxisValues both = one;
      for (auto& [name, extent] : both) extent = std::max(extent, other.at(name));
      if (HasBlocks(op, kernel, both)) return both;
    }
  }
  return least;
}

struct Passed {
  ops::AxisValues axes;
  std::int64_t cap = 0;
};

/// The least extents that pass it: of the first axis of `along`, and where its longest is not enough, of
/// the next ones as well; the others as short as they get.
std::optional<Passed> Passing(const ops::OpSpec& op, const Kink& kink, std::int64_t times,
                              const std::vector<const ops::Axis*>& along,
                              const ops::AxisValues& least, std::int64_t least_cap) {
  const ops::Expression::Kink before = SidesAt(op, kink, least);
  ops::AxisValues shape = least;
  for (const ops::Axis* axis : along) {
    const auto with = [&](std::int64_t extent) -> std::optional<ops::AxisValues> {
      const auto solved = cases::SolveNear(op, axis->name, extent, shape);
      if (!solved) return std::nullopt;
      return *solved;
    };
    const auto passes = [&](std::int64_t extent) -> std::optional<Passed> {
      auto one = with(extent);
      if (!one) return std::nullopt;
      const auto cap = CapPassed(before, SidesAt(op, kink, *one), times, least_cap);
      if (!cap) return std::nullopt;
      return Passed{*std::move(one), *cap};
    };
    std::int64_t low = axis->min, high = axis->max;
    if (passes(high)) {
      while (low < high) {
        const std::int64_t middle = low + (high - low) / 2;
        if (passes(middle)) {
          high = middle;
        } else {
          low = middle + 1;
        }
      }
      return passes(low);
    }
    auto longest = with(axis->max);
    if (longest && SidesAt(op, kink, *longest) != SidesAt(op, kink, shape))
      shape = *std::move(longest);
  }
  return std::nullopt;
}

}  // namespace

// Each kernel that a plan chooses by lengths, where it begins: with rows that may be read in vectors, and such that may not.
std::vector<ops::AxisValues> Campaign::WhereKernelsBegin() const {
  const ops::OpSpec& op = trial_.instance.op;
  ops::AxisValues shortest;
  for (const ops::Axis& axis : op.axes) shortest[axis.name] = axis.min;
  const auto least = cases::SolveAxes(op, {}, shortest);
  std::vector<ops::AxisValues> shapes;
  const std::vector<std::int64_t> constants = cases::ConstantsOf(trial_.plan);
  for (const ops::KernelPlan& kernel : trial_.plan.kernels) {
    for (const std::int64_t past : {std::int64_t{1}, kVector}) {
      if (!least || HasBlocks(op, kernel, *least)) continue;
      auto shape = LeastWithBlocks(op, kernel, constants, *least, past);
      if (std::ranges::find(shapes, shape) == shapes.end()) shapes.push_back(std::move(shape));
    }
  }
  // And at each number that a plan names, and beside it, where other kernels have blocks than anywhere else.
  constexpr std::size_t kMost = 16;
  std::set<std::vector<bool>> known;
  for (const cases::Case& value : tried_) known.insert(PathAt(op, trial_.plan, value.axes));
  for (const ops::AxisValues& axes : shapes) known.insert(PathAt(op, trial_.plan, axes));
  for (const std::int64_t constant : constants) {
    for (const ops::Axis& axis : op.axes) {
      if (axis.kind != ops::Axis::Kind::kVariable || !least) continue;
      for (const std::int64_t length : {constant - 1, constant, constant + 1}) {
        if (length < axis.min || length > axis.max || shapes.size() >= kMost) continue;
        const auto axes = cases::SolveNear(op, axis.name, length, *least);
        if (!axes || axes->at(axis.name) != length) continue;
        if (known.insert(PathAt(op, trial_.plan, *axes)).second) shapes.push_back(*axes);
      }
    }
  }
  return shapes;
}

bool Campaign::IsJudged(std::size_t kernel) const {
  return std::ranges::any_of(
      harvest_.ends, [&](const auto& each) { return each.second.any && each.first.at(kernel); });
}

std::string Campaign::NeverJudged() const {
  const ops::OpSpec& op = trial_.instance.op;
  ops::AxisValues shortest;
  for (const ops::Axis& axis : op.axes) shortest[axis.name] = axis.min;
  const auto least = cases::SolveAxes(op, {}, shortest);
  if (!least) return {};
  const std::vector<std::int64_t> constants = cases::ConstantsOf(trial_.plan);
  for (std::size_t i = 0; i < trial_.plan.kernels.size(); ++i) {
    const ops::KernelPlan& kernel = trial_.plan.kernels[i];
    if (IsJudged(i)) continue;
    for (const std::int64_t past : {std::int64_t{1}, kVector}) {
      const ops::AxisValues axes = LeastWithBlocks(op, kernel, constants, *least, past);
      // Of one that never has any there is nothing to judge.
      if (!HasBlocks(op, kernel, axes)) continue;
      std::vector<std::string> lengths;
      for (const ops::Axis& axis : op.axes) {
        if (axis.kind == ops::Axis::Kind::kVariable)
          lengths.push_back(fmt::format("{}={}", axis.name, axes.at(axis.name)));
      }
      return fmt::format(
          "kernel '{}' of the plan runs where no case could be judged by what it computes [{}]",
          kernel.entry, fmt::join(lengths, " "));
    }
  }
  return {};
}

// Flags choose what is computed: a mask that begins at a number which comes round shows only where the
// mask counts. Where few cases go, each is made with each value, first with what is not zero: what is switched on does
// more.
std::vector<Task> Campaign::WithEachFlag(Task task, bool floats) const {
  std::size_t most = 1;
  std::vector<const ops::TensorSpec*> flags;
  for (const ops::TensorSpec& spec : trial_.instance.op.inputs) {
    if (!spec.is_scalar || (!floats && IsFloat(trial_.instance.TypeOf(spec))) ||
        cases::ClassOf(spec, trial_.instance.TypeOf(spec)) != cases::InputClass::kChoice ||
        spec.domain.values.size() < 2)
      continue;
    flags.push_back(&spec);
    most = std::max(most, spec.domain.values.size());
  }
  std::vector<Task> tasks(most, task);
  for (const ops::TensorSpec* const flag : flags) {
    std::vector<double> values = flag->domain.values;
    std::ranges::stable_partition(values, [](double value) { return value != 0; });
    for (std::size_t number = 0; number < most; ++number) {
      tasks[number].probe.case_.profiles[flag->name] = {
          .kind = "literal", .parameters = {}, .literal = {values[number % values.size()]}};
    }
  }
  return tasks;
}

std::vector<Task> Campaign::WithEachChoice(Task task) const {
  constexpr std::size_t kMost = 8;
  std::vector<Task> tasks = {std::move(task)};
  for (const ops::TensorSpec& spec : trial_.instance.op.inputs) {
    if (!spec.is_scalar ||
        cases::ClassOf(spec, trial_.instance.TypeOf(spec)) != cases::InputClass::kChoice)
      continue;
    const auto& values = spec.domain.values;
    if (values.size() < 2) continue;
    const bool with_all = tasks.size() * values.size() <= kMost;
    std::vector<Task> more;
    for (std::size_t number = 0; number < tasks.size(); ++number) {
      for (std::size_t i = 0; i < (with_all ? values.size() : 1); ++i) {
        Task& one = more.emplace_back(tasks[number]);
        one.probe.case_.profiles[spec.name] = {
            .kind = "literal",
            .parameters = {},
            .literal = {values[with_all ? i : number % values.size()]}};
      }
    }
    tasks = std::move(more);
  }
  return tasks;
}

// Past what caps a grid, once and twice: blocks have to go on, and then once more.
std::vector<Task> Campaign::PastGrids(const std::string& purpose, const char* recipe, bool once,
                                      bool twice) {
  constexpr std::int64_t kMostElements = std::int64_t{1} << 32;
  const ops::OpSpec& op = trial_.instance.op;
  std::vector<const ops::Axis*> axes;
  ops::AxisValues shortest;
  for (const ops::Axis& axis : op.axes) {
    if (axis.kind != ops::Axis::Kind::kVariable) continue;
    axes.push_back(&axis);
    shortest[axis.name] = axis.min;
  }
  const auto least = cases::SolveAxes(op, {}, shortest);
  std::vector<Task> planned;
  if (!least) return planned;
  std::vector<ops::AxisValues> known;
  const auto add = [&](ops::AxisValues shape, std::int64_t times) {
    if (!(times > 1 ? twice : once) || std::ranges::find(known, shape) != known.end()) return;
    known.push_back(shape);
    const std::int64_t elements = cases::TotalElements(trial_.instance, shape);
    Task task =
        SliceOf(std::move(shape), purpose, DeriveSeed(trial_.seed, "grids") + known.size(), recipe);
    if (elements > kMostElements) {
      harvest_.ledger.Planned(purpose);
      LeaveOut(task, "what passes the cap of a grid is too large to run", harvest_);
      return;
    }
    if (times > 1) return planned.push_back(std::move(task));
    std::ranges::move(WithEachFlag(std::move(task)), std::back_inserter(planned));
  };
  const std::int64_t least_cap = has_small_shapes_ ? kLargeCap : kSmallestCap;
  std::set<std::int64_t> caps;
  const std::vector<std::int64_t> constants = cases::ConstantsOf(trial_.plan);
  // Rows that are read in vectors, and such that are not, where that is another kernel's.
  std::vector<std::pair<const ops::KernelPlan*, ops::AxisValues>> bases;
  for (const ops::KernelPlan& kernel : trial_.plan.kernels) {
    for (const std::int64_t past : {kVector, std::int64_t{1}}) {
      auto base = LeastWithBlocks(op, kernel, constants, *least, past);
      if (bases.empty() || bases.back().first != &kernel || bases.back().second != base)
        bases.emplace_back(&kernel, std::move(base));
    }
  }
  for (const auto& [kernel, with_blocks] : bases) {
    for (const ops::Expression& grid : kernel->grid) {
      const auto complete = ops::ResolveAxes(op, with_blocks);
      const std::size_t kinks = complete ? grid.Kinks(*complete).size() : 0;
      for (std::size_t number = 0; number < kinks; ++number) {
        for (const std::int64_t times : {1, 2}) {
          for (std::size_t first = 0; first < axes.size(); ++first) {
            // This axis before the others, the longer ones before the shorter.
            std::vector<const ops::Axis*> along = axes;
            std::ranges::stable_sort(along, std::greater<>(), &ops::Axis::max);
            std::erase(along, axes[first]);
            along.insert(along.begin(), axes[first]);
            // Ordinary cases pass few caps of kernels that begin at some length.
            const auto shape = Passing(op, {&grid, number}, times, along, with_blocks,
                                       with_blocks == *least ? least_cap : kSmallestCap);
            if (!shape) continue;
            caps.insert(shape->cap);
            add(shape->axes, times);
          }
        }
      }
    }
  }
  // Other large numbers of the plan: a grid that is always as large.
  for (const std::int64_t constant : constants) {
    if (constant < kLargeCap || constant > kMostElements || caps.contains(constant)) continue;
    for (const ops::Axis* axis : axes) {
      for (const std::int64_t times : {1, 2}) {
        const auto past = cases::SolveNear(op, axis->name, times * constant + 1, *least);
        if (past && past->at(axis->name) > times * constant) add(*past, times);
      }
    }
  }
  return planned;
}

}  // namespace assay::campaign
