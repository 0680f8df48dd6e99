// Cases in which one index is asked for more often, or more of them often, than a program has room for at a time.
#include <algorithm>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "ops/properties.h"
#include "validator/campaign/campaign.h"
#include "validator/campaign/guidance.h"
#include "validator/cases/profiles.h"
#include "validator/cases/recipes.h"
#include "validator/cases/shapes.h"

namespace assay::campaign {
namespace {

/// The axis along which an input holds indices; null where it holds none, or as many of them everywhere.
const ops::Axis* AlongOf(const ops::Instance& instance, const ops::TensorSpec& input) {
  if (input.shape.empty() || !cases::IsOf(cases::InputClass::kIndex, instance, input))
    return nullptr;
  const ops::Axis* const along = instance.op.FindAxis(input.shape.front().text());
  return along != nullptr && along->kind == ops::Axis::Kind::kVariable ? along : nullptr;
}

}  // namespace

// What has one place gathers its terms in lists, tiles and turns, of as many as a constant says. Just past one and past
// its double, all with one index, so that there is one more turn; values of one sign, of which each turn shows. Beside
// some of all others, for what is normalised over one element is nothing; and beside as many as it takes for kernels that the
// plan chooses by them.
std::vector<Task> Campaign::HotPast(const ProgramConstants& constants) const {
  constexpr std::int64_t kShortest = 64, kPast = 8, kOthers = 6;
  constexpr std::size_t kMost = 4;
  constexpr std::size_t kMostKernels = 3, kMostOfKernel = 3;
  const auto most_steps = static_cast<double>(trial_.effort.campaign_steps) / 16;
  const std::int64_t most_elements = 2 * trial_.effort.long_elements + (1 << 16);
  const ops::OpSpec& op = trial_.instance.op;
  std::set<std::int64_t, std::greater<>> lengths;
  const auto add = [&](std::int64_t constant) {
    if (constant < kShortest || constant > most_elements) return;
    for (const std::int64_t times : {1, 2})
      lengths.insert(times * constant / kPast * kPast + kPast);
  };
  std::ranges::for_each(constants.integers, add);
  std::ranges::for_each(cases::ConstantsOf(trial_.plan), add);
  std::vector<Task> planned;
  for (const ops::TensorSpec& indices : op.inputs) {
    const ops::Axis* const along = AlongOf(trial_.instance, indices);
    if (along == nullptr) continue;
    std::vector<ops::AxisValues> besides = WhereKernelsBegin();
    besides.resize(std::min(besides.size(), kMostKernels));
    besides.insert(besides.begin(), ops::AxisValues());
    std::set<ops::AxisValues> known;
    for (const ops::AxisValues& beside : besides) {
      ops::AxisValues some;
      for (const ops::Axis& other : op.axes) {
        const auto begin = beside.find(other.name);
        some[other.name] =
            std::max({other.min, kOthers, begin == beside.end() ? other.min : begin->second});
      }
      std::size_t count = 0;
      for (const std::int64_t length : lengths) {
        if (count >= (beside.empty() ? kMost : kMostOfKernel)) break;
        const auto axes = cases::SolveNear(op, along->name, length, some);
        if (!axes || axes->at(along->name) < length ||
            cases::TotalElements(trial_.instance, *axes) > most_elements ||
            StepsFor(*axes) > most_steps / (beside.empty() ? 1 : 2) || !known.insert(*axes).second)
          continue;
        cases::Case value =
            cases::MakeCase(trial_.instance, *cases::FindRecipe("biased"), *axes,
                            DeriveSeed(trial_.seed, "hot") + planned.size(), "aimed");
        value.profiles[indices.name] = {.kind = "all_equal", .parameters = {}, .literal = {}};
        planned.push_back(TaskFor(std::move(value), "aimed"));
        ++count;
      }
    }
    AddHotAmongMany(indices, lengths, planned);
    AddHotPastGrids(indices, constants, planned);
  }
  return planned;
}

// The terms of one place are dealt out in pieces of as many as the program says, to as many blocks as the plan says: one piece
// more than there are blocks, so that one of them takes a second turn.
void Campaign::AddHotPastGrids(const ops::TensorSpec& indices, const ProgramConstants& constants,
                               std::vector<Task>& planned) const {
  constexpr std::int64_t kLeastBlocks = 32, kLeastPiece = 64, kVector = 8;
  constexpr std::size_t kMost = 2;
  const auto most_steps = static_cast<double>(trial_.effort.campaign_steps) / 6;
  const ops::OpSpec& op = trial_.instance.op;
  const ops::Axis* const along = AlongOf(trial_.instance, indices);
  if (along == nullptr) return;
  const std::vector<std::int64_t> of_plan = cases::ConstantsOf(trial_.plan);
  std::set<std::int64_t, std::greater<>> pieces(constants.integers.begin(),
                                                constants.integers.end());
  pieces.insert(of_plan.begin(), of_plan.end());
  for (const std::int64_t size : {std::int64_t{1}, kVector}) {
    ops::AxisValues few;
    for (const ops::Axis& other : op.axes) few[other.name] = std::max(other.min, size);
    // As many as a grid has blocks whatever the shape.
    std::set<std::int64_t, std::greater<>> grids;
    std::set<std::int64_t, std::greater<>> lengths;
    const auto longest = cases::SolveNear(op, along->name, along->max, few);
    for (const ops::KernelPlan& kernel : trial_.plan.kernels) {
      const auto complete = longest ? ops::ResolveAxes(op, *longest) : longest;
      const std::int64_t blocks =
          complete ? kernel.grid.front().Evaluate(*complete).value_or(0) : std::int64_t{0};
      const bool is_named = std::ranges::find(of_plan, blocks) != of_plan.end();
      if (is_named && blocks >= kLeastBlocks) grids.insert(blocks);
    }
    for (const std::int64_t blocks : grids) {
      for (const std::int64_t piece : pieces) {
        if (piece >= kLeastPiece && piece < along->max / blocks)
          lengths.insert(blocks * piece + piece / 2);
      }
    }
    std::size_t count = 0;
    for (const std::int64_t length : lengths) {
      const auto axes = cases::SolveNear(op, along->name, length, few);
      if (count >= kMost || !axes || axes->at(along->name) < length ||
          cases::TotalElements(trial_.instance, *axes) > 2 * trial_.effort.whole_elements ||
          StepsFor(*axes) > most_steps)
        continue;
      cases::Case value =
          cases::MakeCase(trial_.instance, *cases::FindRecipe("biased"), *axes,
                          DeriveSeed(trial_.seed, "hot past grids") + planned.size(), "aimed");
      value.profiles[indices.name] = {.kind = "all_equal", .parameters = {}, .literal = {}};
      planned.push_back(TaskFor(std::move(value), "aimed"));
      ++count;
    }
  }
}

// A table has turns and tiles of its own, of as many rows as a constant says: one index for all places, among more rows than
// that.
void Campaign::AddHotAmongMany(const ops::TensorSpec& indices,
                               const std::set<std::int64_t, std::greater<>>& lengths,
                               std::vector<Task>& planned) const {
  constexpr std::int64_t kLeastRows = 256;
  constexpr std::size_t kMostRows = 3, kMostLengths = 2;
  const auto most_steps = static_cast<double>(trial_.effort.campaign_steps) / 6;
  const ops::OpSpec& op = trial_.instance.op;
  const ops::Axis* const along = AlongOf(trial_.instance, indices);
  const ops::Axis* const rows = op.FindAxis(indices.domain.of);
  if (along == nullptr || rows == nullptr || rows->kind != ops::Axis::Kind::kVariable) return;
  ops::AxisValues beside;
  for (const ops::Axis& other : op.axes) beside[other.name] = other.min;
  std::size_t tables = 0;
  for (const std::int64_t table : lengths) {
    if (table < kLeastRows || tables >= kMostRows) continue;
    // Three of four indices lie before what is past it.
    beside[rows->name] = table + table / 4;
    std::size_t count = 0;
    for (const std::int64_t length : lengths) {
      const auto axes = cases::SolveNear(op, along->name, length, beside);
      if (count >= kMostLengths || !axes || axes->at(along->name) < length ||
          axes->at(rows->name) != beside[rows->name] ||
          cases::TotalElements(trial_.instance, *axes) > trial_.effort.whole_elements / 2 ||
          StepsFor(*axes) > most_steps)
        continue;
      cases::Case value =
          cases::MakeCase(trial_.instance, *cases::FindRecipe("biased"), *axes,
                          DeriveSeed(trial_.seed, "hot among many") + planned.size(), "aimed");
      value.profiles[indices.name] = {.kind = "all_equal", .parameters = {}, .literal = {}};
      planned.push_back(TaskFor(std::move(value), "aimed"));
      ++count;
    }
    tables += count > 0 ? 1 : 0;
  }
}

// Rows that are asked for often have a list or a queue, which has room for so many of them: one number of the program says
// what is often, and another for how many there is room. Of both that fit, more rows than one, each asked for more often
// than the other.
std::vector<Task> Campaign::Crowded(const ProgramConstants& constants) const {
  constexpr std::int64_t kLeast = 8, kMostIndices = 1 << 17;
  constexpr std::size_t kMost = 5;
  const ops::OpSpec& op = trial_.instance.op;
  std::set<std::int64_t, std::greater<>> numbers;
  const auto add = [&](std::int64_t constant) {
    if (constant >= kLeast && constant <= kMostIndices / kLeast) numbers.insert(constant);
  };
  std::ranges::for_each(constants.integers, add);
  std::ranges::for_each(cases::ConstantsOf(trial_.plan), add);
  std::vector<Task> planned;
  for (const ops::TensorSpec& indices : op.inputs) {
    const ops::Axis* const along = AlongOf(trial_.instance, indices);
    const ops::Axis* const rows = op.FindAxis(indices.domain.of);
    if (along == nullptr || rows == nullptr || rows->kind != ops::Axis::Kind::kVariable ||
        !ops::MayBeReducedOver(op, along->name))
      continue;
    // Of one that is often, the most rows that leave room for it: fewer rows show less.
    std::int64_t most_rows = 0;
    std::size_t count = 0;
    for (const std::int64_t often : numbers) {
      for (const std::int64_t room : numbers) {
        const std::int64_t many = room + room / 4 + 1;
        if (many * (often + 1) > kMostIndices) continue;
        if (many <= most_rows || count >= kMost) break;
        ops::AxisValues fewest;
        for (const ops::Axis& other : op.axes) fewest[other.name] = other.min;
        fewest[rows->name] = many;
        const auto axes = cases::SolveNear(op, along->name, many * (often + 1), fewest);
        if (!axes || axes->at(rows->name) != many ||
            cases::TotalElements(trial_.instance, *axes) > trial_.effort.whole_elements)
          break;
        Task task = SliceOf(*axes, "crowded", DeriveSeed(trial_.seed, "crowded") + planned.size(),
                            "biased");
        task.probe.case_.profiles[indices.name] = {
            .kind = "sorted", .parameters = {}, .literal = {}};
        // What has found no room may be missing anywhere.
        task.probe.slice_blocks = BlocksOf(trial_.instance, trial_.plan, *axes);
        task.wants.part_steps = 2 * kLongSliceSteps;
        planned.push_back(std::move(task));
        most_rows = many;
        ++count;
        break;
      }
    }
  }
  return planned;
}

}  // namespace assay::campaign
