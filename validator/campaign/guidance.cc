#include "validator/campaign/guidance.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <set>
#include <span>
#include <tuple>

#include "base/rng.h"
#include "validator/cases/profiles.h"
#include "validator/cases/recipes.h"
#include "validator/cases/shapes.h"
#include "validator/execution/coverage.h"

namespace assay::campaign {
namespace {

bool WentOneWay(const BranchCoverage& branch) { return (branch.sides & kBothWays) != kBothWays; }

/// One way to aim an axis at a constant: at constant * factor + delta, the other axes at `others`.
struct AimRow {
  std::int64_t factor;
  std::int64_t delta;
  std::int64_t others;
  std::string_view recipe;
  bool values_after = false;  ///< Then inputs that hold the constants.
  bool round = false;         ///< Of the round number next to it: `n > 8192` compares with 8193.
};
// The number itself first: equality is the rarest condition. Past it, the last element is the
// largest, so that one which is left out shows among a thousand; far past it, many are left out.
constexpr AimRow kAims[] = {{1, 0, 1, "plain"},
                            {1, 0, 3, "plain", true},
                            {1, 1, 1, "edges"},
                            {1, 1, 3, "exact"},
                            {1, -1, 1, "plain"},
                            {2, 1, 1, "plain"},
                            {1, -1, 3, "edges"},
                            {2, 1, 3, "exact"},
                            // Past it and a multiple, which goes the way of vectors.
                            {1, 8, 2, "exact", false, true},
                            {2, 0, 2, "plain", false, true}};

/// The neighbour that is a multiple of eight, if there is one.
std::int64_t Round(std::int64_t constant) {
  if (constant < 15) return constant;
  if (constant % 8 == 1) return constant - 1;
  return constant % 8 == 7 ? constant + 1 : constant;
}

/// An integer that is compared with may be the bits of a float, of 16 or of 32 of them. Only
/// numbers of ordinary size are taken for such.
void AddReadAsFloats(std::int64_t value, std::set<double>& known, std::vector<double>& floats) {
  const auto add = [&](DType type) {
    std::array<std::byte, 8> bytes{};
    std::memcpy(bytes.data(), &value, sizeof value);
    const double real = LoadAsDouble(type, bytes.data());
    if (!(std::fabs(real) >= 1e-3 && std::fabs(real) <= 1e9) || real == 1) return;
    if (known.insert(real).second) floats.push_back(real);
  };
  if (value <= 0xffff) {
    add(DType::kBF16);
    add(DType::kF16);
  } else if (value <= 0xffffffff) {
    add(DType::kF32);
  }
}

/// Adds cases as long as there is room.
class Aim {
 public:
  Aim(const ops::Instance& instance, std::int64_t max_elements, std::size_t count,
      std::uint64_t seed)
      : instance_(instance), max_elements_(max_elements), count_(count), seed_(seed) {}

  void AtAxis(const ops::Axis& axis, std::int64_t value, std::int64_t others,
              std::string_view recipe) {
    if (value < axis.min || value > axis.max || Full()) return;
    ops::AxisValues preferred;
    for (const ops::Axis& other : instance_.op.axes) {
      if (other.name != axis.name) preferred[other.name] = std::max(other.min, others);
    }
    Add(cases::SolveAxes(instance_.op, {{axis.name, value}}, preferred), recipe);
  }

  void AtValue(double value) {
    if (Full()) return;
    ops::AxisValues ordinary;
    for (const ops::Axis& axis : instance_.op.axes)
      ordinary[axis.name] = std::max<std::int64_t>(axis.min, 4);
    AtValue(value, ordinary, {value, 0, value + 1, -value, 1, value});
    // Alone in its row, the value is what a sum or a maximum comes to; so are its half and double.
    const std::vector<double> around = {value / 2, -value / 2, value,
                                        2 * value, -value,     -2 * value};
    for (const ops::Axis& axis : instance_.op.axes) {
      if (axis.kind != ops::Axis::Kind::kVariable) continue;
      ops::AxisValues alone;
      for (const ops::Axis& other : instance_.op.axes) alone[other.name] = other.min;
      alone[axis.name] = std::max<std::int64_t>(axis.min, 6);
      AtValue(value, alone, around);
    }
  }

  bool Full() const { return cases_.size() >= count_; }
  std::vector<cases::Case> Take() { return std::move(cases_); }

  void Add(const Result<ops::AxisValues>& axes, std::string_view recipe) {
    if (!axes || cases::TotalElements(instance_, *axes) > max_elements_ ||
        !seen_.emplace(*axes, recipe).second)
      return;
    cases_.push_back(cases::MakeCase(instance_, *cases::FindRecipe(recipe), *axes,
                                     seed_ + cases_.size(), "aimed"));
  }

 private:
  void AtValue(double value, const ops::AxisValues& preferred, const std::vector<double>& literal) {
    for (const ops::TensorSpec& spec : instance_.op.inputs) {
      const cases::InputClass input_class = cases::ClassOf(spec, instance_.TypeOf(spec));
      if (spec.is_scalar || spec.IsGenerated() || input_class == cases::InputClass::kChoice ||
          Full())
        continue;
      ops::AxisValues pinned;
      if (input_class == cases::InputClass::kIndex) {
        // The index must exist.
        const ops::Axis* of = instance_.op.FindAxis(spec.domain.of);
        if (of == nullptr || of->kind != ops::Axis::Kind::kVariable ||
            value + 2 > static_cast<double>(of->max))
          continue;
        pinned[spec.domain.of] = static_cast<std::int64_t>(value) + 2;
        if (literal.size() > 1 && literal[1] != 0) continue;  // halves are no indices
      }
      const auto solved = cases::SolveAxes(instance_.op, pinned, preferred);
      if (!solved || cases::TotalElements(instance_, *solved) > max_elements_) continue;
      cases::Case aimed = cases::MakeCase(instance_, *cases::FindRecipe("plain"), *solved,
                                          seed_ + cases_.size(), "aimed");
      aimed.profiles[spec.name] = {.kind = "literal", .parameters = {}, .literal = literal};
      cases_.push_back(std::move(aimed));
    }
  }

  const ops::Instance& instance_;
  std::int64_t max_elements_;
  std::size_t count_;
  std::uint64_t seed_;
  std::set<std::pair<ops::AxisValues, std::string_view>> seen_;
  std::vector<cases::Case> cases_;
};

}  // namespace

bool Coverage::Add(const std::vector<BranchCoverage>& branches) {
  bool fresh = false;
  for (const BranchCoverage& branch : branches) {
    const auto [known, first] = branches_.try_emplace(branch.ptx_line, branch);
    const std::uint8_t had = first ? std::uint8_t{0} : known->second.sides;
    known->second.sides = static_cast<std::uint8_t>(had | branch.sides);
    fresh = fresh || known->second.sides != had;
  }
  return fresh;
}

std::vector<verdict::Unreached> Coverage::Unreached() const {
  std::vector<BranchCoverage> partial;
  std::map<std::tuple<std::string, std::uint32_t, std::uint32_t>, BranchCoverage> selections;
  for (const auto& [line, branch] : branches_) {
    if ((branch.sides & kOfSelection) != 0 && branch.line > 0) {
      BranchCoverage& all =
          selections.try_emplace({branch.file, branch.line, branch.column}, branch).first->second;
      all.sides |= branch.sides;
    } else if (WentOneWay(branch)) {
      partial.push_back(branch);
    }
  }
  for (const auto& [place, all] : selections) {
    if (WentOneWay(all)) partial.push_back(all);
  }
  std::ranges::stable_sort(partial, {}, [](const BranchCoverage& branch) { return branch.line; });
  std::vector<verdict::Unreached> unreached;
  for (const BranchCoverage& branch : partial) {
    std::string what = Describe(branch);
    const auto known = std::ranges::find(unreached, what, &verdict::Unreached::what);
    if (known != unreached.end()) {
      ++known->copies;
    } else {
      unreached.push_back({.what = std::move(what)});
    }
  }
  return unreached;
}

std::set<std::uint32_t> Coverage::HalfReached() const {
  std::set<std::uint32_t> lines;
  for (const auto& [line, branch] : branches_) {
    if (WentOneWay(branch)) lines.insert(line);
  }
  return lines;
}

std::size_t Coverage::sides() const {
  std::size_t count = 0;
  for (const auto& [line, branch] : branches_)
    count += static_cast<std::size_t>(std::popcount(std::uint8_t(branch.sides & kBothWays)));
  return count;
}

std::string Describe(const BranchCoverage& partial) {
  const std::string place = partial.line > 0 ? fmt::format("{}:{}", partial.file, partial.line)
                                             : fmt::format("PTX line {}", partial.ptx_line);
  const std::string_view what = (partial.sides & kOfSelection) != 0
                                    ? "the selection's other side: it went one way only"
                                : partial.sides == 0          ? "the branch"
                                : partial.sides == kWentFirst ? "the branch, not taken"
                                                              : "the branch, taken";
  return fmt::format("{}: {}", place, what);
}

ProgramConstants ConstantsOfProgram(const facts::Facts* program) {
  ProgramConstants constants;
  if (program == nullptr) return constants;
  std::set<std::int64_t> compared;
  std::set<std::int64_t> computed;
  std::set<double> floats;
  using How = facts::Constant::How;
  for (const facts::Constant& constant : program->constants) {
    if (constant.real) {
      const double real = constant.number;
      if (constant.how == How::kCompared && std::isfinite(real) && real != 0 && real != 1)
        floats.insert(real);
      continue;
    }
    const std::int64_t value = constant.integer;
    if (value < 2) continue;
    switch (constant.how) {
      case How::kCompared:
        compared.insert(value);
        break;
      case How::kDivisor:
        computed.insert(value);
        break;
      case How::kMask:
        // n % 64 is n & 63, and n / 64 is n >> 6.
        if (value < INT64_MAX && (value & (value + 1)) == 0) computed.insert(value + 1);
        break;
      case How::kShift:
        if (value < 40) computed.insert(std::int64_t{1} << value);
        break;
      case How::kTable:
        constants.tables.push_back(value);
        break;
    }
  }
  constants.integers.assign(compared.begin(), compared.end());
  constants.floats.assign(floats.begin(), floats.end());
  for (const std::int64_t value : computed) {
    if (!compared.contains(value)) constants.integers.push_back(value);
  }
  for (const std::int64_t value : constants.tables) {
    if (std::ranges::find(constants.integers, value) == constants.integers.end())
      constants.integers.push_back(value);
  }
  for (const std::int64_t value : computed) {
    if (value >= 8 && value <= 256) constants.units.push_back(value);
  }
  for (const std::int64_t value : compared) AddReadAsFloats(value, floats, constants.floats);
  return constants;
}

std::int64_t CommonMultiple(std::span<const std::int64_t> units, std::int64_t most) {
  std::vector<std::int64_t> descending(units.begin(), units.end());
  std::ranges::sort(descending, std::greater<>());
  std::int64_t common = 1;
  for (const std::int64_t unit : descending) {
    const std::int64_t both = std::lcm(common, unit);
    if (both <= most) common = both;
  }
  return common;
}

std::int64_t OddMultiplePast(std::int64_t constant, std::int64_t unit) {
  const std::int64_t times = constant / unit + 1;
  return (times | 1) * unit;
}

std::vector<cases::Case> AimedCases(const ops::Instance& instance,
                                    const ProgramConstants& constants, std::int64_t max_elements,
                                    std::size_t count, std::uint64_t seed) {
  Aim aim(instance, max_elements, count, seed);
  for (const AimRow& row : kAims) {
    for (const std::int64_t constant : constants.integers) {
      if (constant > (std::int64_t{1} << 40)) continue;
      for (const ops::Axis& axis : instance.op.axes) {
        if (axis.kind == ops::Axis::Kind::kVariable)
          aim.AtAxis(axis, (row.round ? Round(constant) : constant) * row.factor + row.delta,
                     row.others, row.recipe);
      }
    }
    if (!row.values_after) continue;
    for (const double constant : constants.floats) aim.AtValue(constant);
    for (const std::int64_t constant : constants.integers)
      aim.AtValue(static_cast<double>(constant));
  }
  return aim.Take();
}

std::vector<cases::Case> PairedCases(const ops::Instance& instance,
                                     const ProgramConstants& constants,
                                     const std::function<bool(const ops::AxisValues&)>& fits,
                                     std::uint64_t seed) {
  std::set<std::int64_t> distinct;
  for (const std::int64_t constant : constants.integers) {
    if (constant >= 8 && constant <= (1 << 20)) distinct.insert(Round(constant));
  }
  struct Wanted {
    std::int64_t elements;
    ops::AxisValues axes;
    std::string_view recipe;
  };
  std::vector<Wanted> wanted;
  const std::span<const ops::Axis> axes = instance.op.axes;
  for (const ops::Axis& first : axes) {
    for (const ops::Axis& second :
         axes.subspan(static_cast<std::size_t>(&first - axes.data()) + 1)) {
      if (first.kind != ops::Axis::Kind::kVariable || second.kind != ops::Axis::Kind::kVariable)
        continue;
      for (const std::int64_t delta : {1, 8}) {
        ops::AxisValues small;
        for (const ops::Axis& axis : axes) small[axis.name] = std::max<std::int64_t>(axis.min, 2);
        // The first axis grows, the second shrinks: only steps of the staircase count.
        std::int64_t above = 0;
        for (auto one = distinct.rbegin(); one != distinct.rend(); ++one) {
          if (*one + delta > first.max) continue;
          for (auto two = distinct.rbegin(); two != distinct.rend() && *two > above; ++two) {
            if (*two + delta > second.max) continue;
            small[second.name] = *two + delta;
            const auto solved = cases::SolveNear(instance.op, first.name, *one + delta, small);
            if (!solved || !fits(*solved)) continue;
            above = *two;
            wanted.push_back(
                {cases::TotalElements(instance, *solved), *solved, delta == 1 ? "exact" : "plain"});
            break;
          }
        }
      }
    }
  }
  std::ranges::stable_sort(wanted, {}, &Wanted::elements);
  Aim aim(instance, INT64_MAX, wanted.size(), seed);
  for (const Wanted& one : wanted) aim.Add(one.axes, one.recipe);
  return aim.Take();
}

}  // namespace assay::campaign
