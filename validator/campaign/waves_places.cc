// A wave of shapes that are too large for the program itself: where it writes, as its skeleton says (places.cc).
#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <set>

#include "base/rng.h"
#include "ops/properties.h"
#include "validator/campaign/blocks.h"
#include "validator/campaign/campaign.h"
#include "validator/campaign/parts.h"
#include "validator/cases/shapes.h"

namespace assay::campaign {
namespace {

// Elements of all outputs where all blocks are to run; of an op whose smallest case is large already; and where places are
// rounded.
constexpr std::int64_t kMostOutputs = std::int64_t{1} << 24;
constexpr std::int64_t kMostOutputsOfConstants = std::int64_t{1} << 26;
constexpr std::int64_t kMostWhereRounded = std::int64_t{1} << 27;
// Of such lengths, from anywhere: what is rounded goes wrong at one of many, and not from some length on.
constexpr int kLengthsWhereRounded = 24;
constexpr int kReducedWhereRounded = 6;
constexpr std::size_t kMostWhereRoundedDrawn = 32;
// And of those at which numbers of the program are known to be rounded to others (misrounded.h).
constexpr std::size_t kMostMisrounded = 6;
// Lengths that are drawn of each axis, each about half as long as the one before, and of all of them.
constexpr int kLengths = 9;
constexpr std::int64_t kShorter = 2;
constexpr std::size_t kMostDrawn = 18;
// At entries of tables, of each axis, and of all of them.
constexpr std::size_t kMostAtTables = 2;
constexpr std::int64_t kMostAtATable = std::int64_t{1} << 30;
constexpr std::size_t kMostAtTablesDrawn = 6;
// So many of each axis, the longest, may take that much where the last blocks do not come to the end.
constexpr std::ptrdiff_t kDear = 3;
constexpr std::uint64_t kMostOfDear = 800'000'000;
// And the longest one of each.
constexpr std::uint64_t kMostOfLongest = 2 * kMostOfDear;
// Of those at which it is not known in the end who writes the end of an output, so many are asked; before each, from twice the
// longest known length on, each twice as long as the one before, such as take this much less.
constexpr std::size_t kMostUnknown = 3;
constexpr std::int64_t kShorterBefore = 4;
constexpr std::int64_t kBeside = 8;  // Of the axes beside, at most.
constexpr std::int64_t kBesideReduced = 48;
// Two axes of several tiles each, which groups of tiles are numbered over: so many shapes of two axes, and of all of them.
constexpr std::int64_t kMostOfTwo = std::int64_t{1} << 22;
constexpr std::int64_t kLeastOfTwo = 65, kMostOfTheShorter = 700;
constexpr int kOfTwo = 6;
constexpr std::size_t kMostOfTwoDrawn = 18;

/// No more than `most`, else INT64_MAX.
std::int64_t OutputElements(const ops::Instance& instance, const ops::AxisValues& axes,
                            std::int64_t most) {
  const auto complete = ops::ResolveAxes(instance.op, axes);
  if (!complete) return INT64_MAX;
  std::int64_t elements = 0;
  for (const ops::TensorSpec& output : instance.op.outputs) {
    const auto shape = ops::ResolveShape(output, *complete);
    const std::int64_t count = shape ? ElementCount(*shape).value_or(INT64_MAX) : INT64_MAX;
    if (count > most - elements) return INT64_MAX;
    elements += count;
  }
  return elements;
}

/// Of each axis a short length, of so many.
ops::AxisValues Beside(const ops::Instance& instance, std::int64_t most, Rng& rng) {
  ops::AxisValues beside;
  for (const ops::Axis& other : instance.op.axes) {
    const std::int64_t room = std::clamp<std::int64_t>(other.max - other.min + 1, 1, most);
    beside[other.name] =
        other.min + static_cast<std::int64_t>(rng.Below(static_cast<std::uint64_t>(room)));
  }
  return beside;
}

/// Shapes of lengths along an axis that lie anywhere up to the longest of which all that is written can be looked at.
std::vector<ops::AxisValues> AnywhereAlong(const ops::Instance& instance, const ops::Axis& axis,
                                           Rng& rng) {
  // All of what is reduced over takes too long: few, and of so many elements that a float no longer numbers them.
  const bool is_reduced = ops::MayBeReducedOver(instance.op, axis.name);
  const int lengths = is_reduced ? kReducedWhereRounded : kLengthsWhereRounded;
  std::vector<ops::AxisValues> drawn;
  std::int64_t most = axis.max;
  for (int i = 0; i < lengths && most > axis.min;) {
    const std::int64_t length =
        axis.min + 1 +
        static_cast<std::int64_t>(rng.Below(static_cast<std::uint64_t>(most - axis.min)));
    const auto axes =
        cases::SolveNear(instance.op, axis.name, length,
                         Beside(instance, is_reduced ? kBesideReduced : kBeside, rng));
    if (axes && OutputElements(instance, *axes, kMostWhereRounded) <= kMostWhereRounded) {
      drawn.push_back(*axes);
      ++i;
    } else {
      most = std::max(axis.min, length - 1);
    }
  }
  return drawn;
}

/// Shapes of some length along an axis, of which all that is written can be looked at.
std::vector<ops::AxisValues> DrawnAlong(const ops::Instance& instance, const ops::Axis& axis,
                                        std::int64_t most_outputs, Rng& rng) {
  std::vector<ops::AxisValues> drawn;
  std::int64_t most = axis.max;
  for (int i = 0; i < kLengths && most > axis.min; ++i, most /= kShorter) {
    const ops::AxisValues beside = Beside(instance, kBeside, rng);
    for (; most > axis.min; most /= 2) {
      const std::int64_t length =
          most - static_cast<std::int64_t>(rng.Below(static_cast<std::uint64_t>(most / 2 + 1)));
      const auto axes = cases::SolveNear(instance.op, axis.name, length, beside);
      if (!axes || OutputElements(instance, *axes, most_outputs) > most_outputs) continue;
      drawn.push_back(*axes);
      break;
    }
  }
  return drawn;
}

/// From low to high, all magnitudes alike: of so many equal parts of these, from the one of that number.
std::int64_t OfAnyMagnitude(std::int64_t low, std::int64_t high, Rng& rng, int part, int parts) {
  const double ratio = static_cast<double>(std::max(high, low)) / static_cast<double>(low);
  return static_cast<std::int64_t>(static_cast<double>(low) *
                                   std::pow(ratio, (part + rng.Unit()) / parts));
}

/// Are both of a length that may be chosen, and is one of them a dimension of an output?
bool MakeAnOutput(const ops::OpSpec& op, const ops::Axis& one, const ops::Axis& other) {
  return one.kind == ops::Axis::Kind::kVariable && other.kind == ops::Axis::Kind::kVariable &&
         std::ranges::any_of(op.outputs, [&](const ops::TensorSpec& output) {
           return ops::DimensionOf(output, one.name) || ops::DimensionOf(output, other.name);
         });
}

/// Shapes of which two axes are long, one by one of all such pairs, either in turn the longer, and the longer one of another
/// magnitude each time. Of an axis that is never long every second one is nearly as long as it may be.
std::vector<ops::AxisValues> DrawnOfTwo(const ops::Instance& instance, Rng& rng) {
  const ops::OpSpec& op = instance.op;
  std::vector<ops::AxisValues> drawn;
  for (int i = 0; i < kOfTwo; ++i) {
    for (std::size_t first = 0; first < op.axes.size(); ++first) {
      for (std::size_t second = first + 1; second < op.axes.size(); ++second) {
        if (!MakeAnOutput(op, op.axes[first], op.axes[second])) continue;
        const ops::Axis& longer = op.axes[i % 2 == 0 ? first : second];
        const ops::Axis& shorter = op.axes[i % 2 == 0 ? second : first];
        const auto of_axis = [&](const ops::Axis& axis, std::int64_t least, std::int64_t most,
                                 int part, int parts) {
          if (axis.max <= kMostOfTheShorter && i / 2 % 2 == 0)
            return axis.max - static_cast<std::int64_t>(rng.Below(2));
          return std::min(axis.max, OfAnyMagnitude(least, most, rng, part, parts));
        };
        const std::int64_t width = of_axis(shorter, kLeastOfTwo, kMostOfTheShorter, 0, 1);
        const std::int64_t length =
            of_axis(longer, kMostOfTheShorter, kMostOfTwo / width, i / 2, kOfTwo / 2);
        const auto axes = cases::SolveAxes(op, {{longer.name, length}, {shorter.name, width}},
                                           Beside(instance, 2, rng));
        if (axes && OutputElements(instance, *axes, kMostOfTwo) <= kMostOfTwo)
          drawn.push_back(*axes);
      }
    }
  }
  return drawn;
}

/// Shapes of the lengths along an axis that tables of the program hold, the longest of them.
std::vector<ops::AxisValues> AtTables(const ops::Instance& instance, const ops::Axis& axis,
                                      const ProgramConstants& constants, Rng& rng) {
  std::set<std::int64_t, std::greater<>> lengths;
  for (const std::int64_t entry : constants.tables) {
    if (entry > axis.min + kBeside && entry <= axis.max) lengths.insert(entry);
  }
  std::vector<ops::AxisValues> shapes;
  for (const std::int64_t length : lengths) {
    if (shapes.size() >= kMostAtTables) break;
    const auto axes =
        cases::SolveNear(instance.op, axis.name, length, Beside(instance, kBeside, rng));
    if (axes && axes->at(axis.name) == length &&
        OutputElements(instance, *axes, kMostAtATable) <= kMostAtATable)
      shapes.push_back(*axes);
  }
  return shapes;
}

}  // namespace

Task Campaign::PlacesOf(const ops::AxisValues& axes, std::uint64_t seed) const {
  // What is overwritten is not copied here.
  const bool zeros_between = trial_.instance.op.generator.has_value() &&
                             cases::TotalElements(trial_.instance, axes) > kMostMade;
  Task task = zeros_between ? EndsOf(axes, "places", seed) : SliceOf(axes, "places", seed);
  task.probe.places_only = true;
  return task;
}

// Some lengths of each axis, of which all blocks run, for what nobody writes in the middle shows in no slice.
std::vector<Task> Campaign::Places() {
  std::vector<Task> planned;
  if (trial_.effort.huge_shapes == 0) return planned;
  const std::uint64_t seed = DeriveSeed(trial_.seed, "places");
  Rng rng(seed);
  std::set<ops::AxisValues> known;
  const auto plan = [&](const std::vector<ops::AxisValues>& shapes, std::size_t most,
                        std::uint64_t dear = kMostOfDear) {
    for (const ops::AxisValues& axes : shapes) {
      if (planned.size() >= most || !known.insert(axes).second) continue;
      std::vector<Task> tasks = WithEachFlag(PlacesOf(axes, seed + planned.size()));
      planned.push_back(std::move(tasks[planned.size() % tasks.size()]));
      if (&axes - shapes.data() < kDear) planned.back().wants.part_steps = dear;
    }
  };
  const ProgramConstants constants = ConstantsOfProgram(trial_.compiled.facts.get());
  const std::int64_t most_outputs = has_small_shapes_ ? kMostOutputs : kMostOutputsOfConstants;
  std::vector<ops::AxisValues> anywhere, at_tables;
  for (const ops::Axis& axis : trial_.instance.op.axes) {
    if (axis.kind != ops::Axis::Kind::kVariable) continue;
    plan(DrawnAlong(trial_.instance, axis, most_outputs, rng), kMostDrawn);
    // Where a number of a tile has outgrown its format, some blocks write outside of everything, or nothing.
    const auto longest = has_small_shapes_ ? std::nullopt
                                           : AsLongAsCanBe(trial_.instance, axis,
                                                           Beside(trial_.instance, kBeside, rng));
    if (longest && OutputElements(trial_.instance, *longest, most_outputs) > most_outputs)
      plan({*longest}, planned.size() + 1, kMostOfLongest);
    if (trial_.compiled.skeleton.rounds)
      std::ranges::move(AnywhereAlong(trial_.instance, axis, rng), std::back_inserter(anywhere));
    std::ranges::move(AtTables(trial_.instance, axis, constants, rng),
                      std::back_inserter(at_tables));
  }
  std::vector<ops::AxisValues> misrounded;
  for (const MisroundedShape& shape : Misrounded()) {
    if (OutputElements(trial_.instance, shape.axes, kMostWhereRounded) <= kMostWhereRounded)
      misrounded.push_back(shape.axes);
  }
  plan(misrounded, planned.size() + kMostMisrounded);
  plan(anywhere, planned.size() + kMostWhereRoundedDrawn);
  plan(at_tables, planned.size() + kMostAtTablesDrawn);
  plan(DrawnOfTwo(trial_.instance, rng), planned.size() + kMostOfTwoDrawn);
  return planned;
}

std::vector<ops::AxisValues> Campaign::ShorterUnknownEnds(const ops::AxisValues& least,
                                                          const std::string& along,
                                                          std::int64_t known) const {
  const ops::OpSpec& op = trial_.instance.op;
  std::vector<ops::AxisValues> shapes;
  if (known == 0) return shapes;
  for (std::int64_t length = 2 * known; length <= least.at(along) / kShorterBefore; length *= 2) {
    const auto axes = cases::SolveNear(op, along, length, least);
    if (axes && axes->at(along) == length &&
        PathAt(op, trial_.plan, *axes) == PathAt(op, trial_.plan, least))
      shapes.push_back(*axes);
  }
  return shapes;
}

std::vector<std::vector<ops::AxisValues>> Campaign::LeastUnknownEnds() const {
  const ops::OpSpec& op = trial_.instance.op;
  const auto elements = [this](const ops::AxisValues& axes) {
    return cases::TotalElements(trial_.instance, axes);
  };
  std::set<std::int64_t> lengths;
  for (const std::int64_t constant : cases::ConstantsOf(trial_.plan))
    lengths.insert({constant, constant + 1});
  std::vector<std::vector<ops::AxisValues>> shapes;
  for (const auto& [path, ends] : harvest_.ends) {
    for (const std::string& along : ends.UnknownAxes()) {
      ops::AxisValues least = ends.unknown_along.at(along).axes;
      const std::int64_t length = least.at(along);
      for (const ops::Axis& other : op.axes) {
        if (other.name == along || other.kind != ops::Axis::Kind::kVariable) continue;
        std::set<std::int64_t> shorter = lengths;
        shorter.insert(other.min);
        for (const std::int64_t extent : shorter) {
          if (extent < other.min || extent >= least.at(other.name)) continue;
          ops::AxisValues wanted = least;
          wanted[other.name] = extent;
          const auto axes = cases::SolveNear(op, along, length, wanted);
          if (!axes || axes->at(along) != length || PathAt(op, trial_.plan, *axes) != path ||
              elements(*axes) >= elements(least))
            continue;
          least = *axes;
          break;
        }
      }
      if (std::ranges::any_of(shapes, [&](const auto& each) { return each.back() == least; }))
        continue;
      const auto known = ends.known_along.find(along);
      shapes.push_back(
          ShorterUnknownEnds(least, along, known == ends.known_along.end() ? 0 : known->second));
      shapes.back().push_back(std::move(least));
    }
  }
  std::ranges::stable_sort(shapes, {}, [&](const auto& each) { return elements(each.back()); });
  return shapes;
}

// What would be left unknown in the end may take far more.
std::vector<Task> Campaign::FarPlaces() {
  std::vector<Task> planned;
  if (trial_.effort.huge_shapes == 0) return planned;
  const std::uint64_t seed = DeriveSeed(trial_.seed, "far places");
  std::set<ops::AxisValues> known;
  for (const auto& [name, axes] : harvest_.left_out_at) {
    const Harvest::Ends& ends = harvest_.ends[PathAt(trial_.instance.op, trial_.plan, axes)];
    const auto seen = ends.known_along.find(name);
    if (seen != ends.known_along.end() && seen->second >= axes.at(name)) continue;
    if (!known.insert(axes).second) continue;
    for (Task& task : WithEachFlag(PlacesOf(axes, seed + known.size()))) {
      task.wants.part_steps = kMostOfDear;
      planned.push_back(std::move(task));
    }
  }
  std::size_t asked = 0;
  for (const std::vector<ops::AxisValues>& shapes : LeastUnknownEnds()) {
    if (asked++ >= kMostUnknown) break;
    for (const ops::AxisValues& axes : shapes) {
      Task task = PlacesOf(axes, seed + 100 + asked);
      task.wants.part_steps = kMostPlacesSteps;
      planned.push_back(std::move(task));
    }
  }
  return planned;
}

}  // namespace assay::campaign
