// Cases in which one index is asked for more often, or more of them often, than a program has room for at a time.
#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "ops/properties.h"
#include "validator/campaign/blocks.h"
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

// Just past the numbers of program and plan and past their doubles, whole vectors.
std::set<std::int64_t, std::greater<>> Campaign::PastConstants() const {
  constexpr std::int64_t kShortest = 64;
  const std::int64_t most_elements = 2 * trial_.effort.long_elements + (1 << 16);
  std::set<std::int64_t, std::greater<>> lengths;
  const auto add = [&](std::int64_t constant) {
    if (constant < kShortest || constant > most_elements) return;
    for (const std::int64_t times : {1, 2})
      lengths.insert(times * constant / kVector * kVector + kVector);
  };
  std::ranges::for_each(ConstantsOfProgram(trial_.compiled.facts.get()).integers, add);
  std::ranges::for_each(cases::ConstantsOf(trial_.plan), add);
  return lengths;
}

// What has one place gathers its terms in lists, tiles and turns, of as many as a constant says. Just past one and past
// its double, all with one index, so that there is one more turn; values of one sign, of which each turn shows. Beside
// some of all others, for what is normalised over one element is nothing; and beside as many as it takes for kernels that the
// plan chooses by them.
std::vector<Task> Campaign::HotPast() const {
  constexpr std::int64_t kOthers = 6;
  constexpr std::size_t kMost = 4;
  constexpr std::size_t kMostKernels = 3, kMostOfKernel = 3;
  const auto most_steps = static_cast<double>(trial_.effort.campaign_steps) / 16;
  const std::int64_t most_elements = 2 * trial_.effort.long_elements + (1 << 16);
  const ops::OpSpec& op = trial_.instance.op;
  const std::set<std::int64_t, std::greater<>> lengths = PastConstants();
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
  }
  return planned;
}

// The same for kernels that the plan chooses where rows are wide, which takes more than other waves have.
std::vector<Task> Campaign::HotOnPaths() const {
  constexpr std::size_t kMost = 2;
  // Some thousand rows of a thousand: the truth of more takes many seconds, and of what is made over each row as well.
  constexpr std::int64_t kMostElements = 5 << 20, kMostOfReduced = 1 << 20;
  const std::int64_t tried_before = 2 * trial_.effort.long_elements + (1 << 16);
  const ops::OpSpec& op = trial_.instance.op;
  std::vector<Task> planned;
  std::set<std::vector<bool>> paths;
  for (const ops::TensorSpec& indices : op.inputs) {
    const ops::Axis* const along = AlongOf(trial_.instance, indices);
    if (along == nullptr) continue;
    const bool reduced = std::ranges::any_of(op.axes, [&](const ops::Axis& axis) {
      return &axis != along && axis.name != indices.domain.of &&
             ops::MayBeReducedOver(op, axis.name);
    });
    for (const ops::AxisValues& beside : WhereKernelsBegin()) {
      for (const std::int64_t length : PastConstants()) {
        const auto axes = cases::SolveNear(op, along->name, length, beside);
        if (!axes || axes->at(along->name) < length) continue;
        const std::int64_t elements = cases::TotalElements(trial_.instance, *axes);
        const ops::TensorSpec* const banded =
            reduced && elements > kMostOfReduced ? MatrixAlong(along->name) : nullptr;
        if (elements <= tried_before || elements > kMostElements ||
            (reduced && elements > kMostOfReduced && banded == nullptr) ||
            !paths.insert(PathAt(op, trial_.plan, *axes)).second)
          continue;
        Task task = SliceOf(*axes, "ways", DeriveSeed(trial_.seed, "hot on paths") + planned.size(),
                            "biased");
        task.probe.case_.profiles[indices.name] = {
            .kind = "all_equal", .parameters = {}, .literal = {}};
        if (banded != nullptr)
          task.probe.case_.profiles[banded->name] = {
              .kind = "banded", .parameters = {}, .literal = {}};
        task.wants.part_steps = task.wants.slice_steps = kMostLimitSteps / 4;
        task.wants.watch = task.wants.determinism = false;
        planned.push_back(std::move(task));
        break;
      }
      if (paths.size() >= kMost) return planned;
    }
  }
  return planned;
}

// A table has turns and tiles of its own, of as many rows as a constant says: one index for all places, or the first and the
// last, as many as the largest constant that is affordable, among more rows than that.
std::vector<Task> Campaign::HotAmongMany() const {
  constexpr std::int64_t kLeastRows = 256;
  constexpr std::size_t kMostRows = 3;
  const auto most_steps = static_cast<double>(trial_.effort.campaign_steps) / 3;
  const ops::OpSpec& op = trial_.instance.op;
  const std::set<std::int64_t, std::greater<>> lengths = PastConstants();
  std::vector<Task> planned;
  for (const ops::TensorSpec& indices : op.inputs) {
    const ops::Axis* const along = AlongOf(trial_.instance, indices);
    const ops::Axis* const rows = op.FindAxis(indices.domain.of);
    if (along == nullptr || rows == nullptr || rows->kind != ops::Axis::Kind::kVariable) continue;
    ops::AxisValues beside;
    for (const ops::Axis& other : op.axes) beside[other.name] = other.min;
    std::size_t tables = 0;
    for (const std::int64_t table : lengths) {
      if (table < kLeastRows || tables >= kMostRows) continue;
      // Three of four indices lie before what is past it, and the first does.
      beside[rows->name] = table + table / 4;
      for (const std::int64_t length : lengths) {
        const auto axes = cases::SolveNear(op, along->name, length, beside);
        if (!axes || axes->at(along->name) < length || axes->at(rows->name) != beside[rows->name] ||
            cases::TotalElements(trial_.instance, *axes) > trial_.effort.whole_elements / 2 ||
            StepsFor(*axes) > most_steps)
          continue;
        for (const char* const places : {"all_equal", "edges"}) {
          cases::Case value =
              cases::MakeCase(trial_.instance, *cases::FindRecipe("biased"), *axes,
                              DeriveSeed(trial_.seed, "hot among many") + planned.size(), "ways");
          value.profiles[indices.name] = {.kind = places, .parameters = {}, .literal = {}};
          planned.push_back(TaskFor(std::move(value), "ways"));
        }
        ++tables;
        break;
      }
    }
  }
  return planned;
}

// The terms of one place are dealt out in pieces of as many as the program says, to as many blocks as the plan says: one piece
// more than there are blocks, so that one of them takes a second turn.
std::vector<Task> Campaign::HotPastGrids() const {
  const ops::OpSpec& op = trial_.instance.op;
  const std::vector<std::int64_t> of_plan = cases::ConstantsOf(trial_.plan);
  const ProgramConstants of_program = ConstantsOfProgram(trial_.compiled.facts.get());
  std::set<std::int64_t> pieces(of_program.integers.begin(), of_program.integers.end());
  pieces.insert(of_plan.begin(), of_plan.end());
  std::vector<Task> planned;
  for (const ops::TensorSpec& indices : op.inputs) {
    const ops::Axis* const along = AlongOf(trial_.instance, indices);
    if (along == nullptr) continue;
    for (const std::int64_t size : {std::int64_t{1}, kVector}) {
      ops::AxisValues few;
      for (const ops::Axis& other : op.axes) few[other.name] = std::max(other.min, size);
      const auto axes = PastPieces(*along, of_plan, pieces, few);
      if (!axes) continue;
      cases::Case value =
          cases::MakeCase(trial_.instance, *cases::FindRecipe("biased"), *axes,
                          DeriveSeed(trial_.seed, "hot past grids") + planned.size(), "ways");
      value.profiles[indices.name] = {.kind = "all_equal", .parameters = {}, .literal = {}};
      planned.push_back(TaskFor(std::move(value), "ways"));
    }
  }
  return planned;
}

// The longest that is affordable, beside these. A grid that is a number of the plan where the axis is as long as can be is the
// same at all shapes.
std::optional<ops::AxisValues> Campaign::PastPieces(const ops::Axis& along,
                                                    std::span<const std::int64_t> of_plan,
                                                    const std::set<std::int64_t>& pieces,
                                                    const ops::AxisValues& beside) const {
  constexpr std::int64_t kLeastBlocks = 32, kLeastPiece = 64;
  const auto most_steps = static_cast<double>(trial_.effort.campaign_steps) / 6;
  const ops::OpSpec& op = trial_.instance.op;
  const auto longest = cases::SolveNear(op, along.name, along.max, beside);
  const auto complete = longest ? ops::ResolveAxes(op, *longest) : longest;
  std::set<std::int64_t, std::greater<>> lengths;
  for (const ops::KernelPlan& kernel : trial_.plan.kernels) {
    const std::int64_t blocks = complete ? kernel.grid.front().Evaluate(*complete).value_or(0) : 0;
    if (blocks < kLeastBlocks || std::ranges::find(of_plan, blocks) == of_plan.end()) continue;
    for (const std::int64_t piece : pieces) {
      if (piece >= kLeastPiece && piece < along.max / blocks)
        lengths.insert(blocks * piece + piece / 2);
    }
  }
  for (const std::int64_t length : lengths) {
    const auto axes = cases::SolveNear(op, along.name, length, beside);
    if (axes && axes->at(along.name) >= length &&
        cases::TotalElements(trial_.instance, *axes) <= 2 * trial_.effort.whole_elements &&
        StepsFor(*axes) <= most_steps)
      return *axes;
  }
  return std::nullopt;
}

// Rows that are asked for often have a list or a queue, which has room for so many of them: one number of the program says
// what is often, and another for how many there is room. Of both that fit, more rows than one, each asked for more often
// than the other.
std::vector<Task> Campaign::Crowded(const ProgramConstants& constants,
                                    const Crowding& crowding) const {
  constexpr std::int64_t kLeast = 8;
  const ops::OpSpec& op = trial_.instance.op;
  std::set<std::int64_t, std::greater<>> numbers;
  const auto add = [&](std::int64_t constant) {
    if (constant >= kLeast && constant <= crowding.most / kLeast) numbers.insert(constant);
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
      if (often > crowding.often) continue;
      for (const std::int64_t room : numbers) {
        const std::int64_t many = room + room / 4 + 1;
        const std::int64_t length = many * (often + 1);
        if (length > std::min(crowding.most, along->max) || many > crowding.rows) continue;
        if (many <= most_rows || length <= crowding.least || count >= crowding.cases) break;
        ops::AxisValues fewest;
        for (const ops::Axis& other : op.axes) fewest[other.name] = other.min;
        fewest[rows->name] = many;
        const auto axes = cases::SolveNear(op, along->name, length, fewest);
        if (!axes || axes->at(rows->name) != many ||
            cases::TotalElements(trial_.instance, *axes) >
                2 * std::max(trial_.effort.whole_elements, crowding.most))
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

// A list of what is asked for some thousands of times each has room for dozens or hundreds: as many indices as that takes.
std::vector<Task> Campaign::CrowdedFar() const {
  std::vector<Task> planned =
      Crowded(ConstantsOfProgram(trial_.compiled.facts.get()),
              {.least = kMostCrowded, .most = 1 << 20, .often = 1 << 14, .rows = 512, .cases = 2});
  for (Task& task : planned) {
    task.purpose = "ways";
    task.wants.part_steps = task.wants.slice_steps = kMostLimitSteps / 2;
    task.wants.watch = task.wants.determinism = false;
  }
  return planned;
}

}  // namespace assay::campaign
