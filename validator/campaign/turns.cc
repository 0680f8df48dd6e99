#include "validator/campaign/turns.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "validator/cases/case.h"
#include "validator/cases/shapes.h"

namespace assay::campaign {
namespace {

constexpr std::size_t kMostTurns = 600;
constexpr std::size_t kMostSecond = 400;    ///< More of them, from the first ones.
constexpr std::size_t kMostOfAKernel = 60;  ///< And of each kernel that no small shape runs.
constexpr std::int64_t kWalk = 320;      ///< Extents that are walked one by one for what repeats,
constexpr std::int64_t kShortWalk = 40;  ///< and for what does not.

std::vector<const ops::Axis*> VariablesOf(const ops::Instance& instance) {
  std::vector<const ops::Axis*> variables;
  for (const ops::Axis& axis : instance.op.axes) {
    if (axis.kind == ops::Axis::Kind::kVariable) variables.push_back(&axis);
  }
  return variables;
}

/// Shapes that differ along one axis, each of them made once.
class Line {
 public:
  Line(const Decisions& decisions, const ops::AxisValues& base, const ops::Axis& axis)
      : decisions_(decisions), axis_(axis), axes_(base) {}

  const ops::Axis& axis() const { return axis_; }
  ops::AxisValues ShapeAt(std::int64_t value) const { return Moved(axes_, axis_, value); }
  /// Null for what the op does not admit.
  const Decisions::Point* At(std::int64_t value) {
    const auto [at, fresh] = points_.try_emplace(value);
    if (fresh) {
      axes_[axis_.name] = value;
      at->second = decisions_.At(axes_);
    }
    const std::optional<Decisions::Point>& point = at->second;
    return point ? &*point : nullptr;
  }
  std::uint8_t CodeAt(std::size_t decision, std::int64_t value) {
    const Decisions::Point* const point = At(value);
    return point != nullptr ? CodeOf(decisions_.Of(decision, *point)) : kUnknownOutcome;
  }

 private:
  const Decisions& decisions_;
  const ops::Axis& axis_;
  ops::AxisValues axes_;
  std::map<std::int64_t, std::optional<Decisions::Point>> points_;
};

class TurnFinder {
 public:
  TurnFinder(const ops::Instance& instance, const Decisions& decisions, std::stop_token stop)
      : instance_(instance),
        decisions_(decisions),
        stop_(std::move(stop)),
        axes_(VariablesOf(instance)) {
    for (std::size_t i = 0; i < decisions.size(); ++i) {
      if (!decisions.Input(i).empty()) continue;
      shape_decisions_.push_back(i);
      if (!decisions.IsLimit(i)) ordinary_.push_back(i);
    }
  }

  std::vector<ops::AxisValues> Run() {
    FindTurns();
    return std::move(turns_);
  }

 private:
  void FindTurns() {
    const std::vector<ops::AxisValues> bases = BasesOf(instance_);
    for (const ops::AxisValues& base : bases) AddTurn(base);
    for (const ops::AxisValues& base : bases) {
      for (const ops::Axis* axis : axes_) {
        Line line(decisions_, base, *axis);
        Walk(line);
        Leap(line, ordinary_);
      }
    }
    Equations(bases);
    OfOtherKernels(bases);
    Limits(bases);
  }

  /// What kernels decide that no small shape runs: beside the smallest shape of two long axes at which each does.
  void OfOtherKernels(const std::vector<ops::AxisValues>& bases) {
    if (bases.empty()) return;
    const std::optional<Decisions::Point> first = decisions_.At(bases.front());
    const std::size_t kernels = first ? first->kernels.size() : 0;
    for (std::size_t kernel = 0; kernel < kernels; ++kernel) {
      const auto runs = [&](const ops::AxisValues& axes) {
        const auto point = decisions_.At(axes);
        return point && point->kernels[kernel].runs;
      };
      if (stop_.stop_requested() || std::ranges::any_of(bases, runs)) continue;
      std::vector<std::size_t> own;
      for (const std::size_t d : ordinary_) {
        if (decisions_.KernelOf(d) == kernel) own.push_back(d);
      }
      const auto base = own.empty() ? std::nullopt : SmallestOf(runs, bases.back());
      if (!base) continue;
      most_ += kMostOfAKernel;
      AddTurn(*base);
      for (const ops::Axis* axis : axes_) LeapFrom(*base, *axis, own);
    }
  }

  /// Of shapes that have two lengths of those so far, the smallest at which that holds.
  std::optional<ops::AxisValues> SmallestOf(const auto& holds, const ops::AxisValues& base) const {
    constexpr std::size_t kMostLengths = 60;
    std::vector<std::set<std::int64_t>> lengths(axes_.size());
    for (const ops::AxisValues& turn : turns_) {
      for (std::size_t a = 0; a < axes_.size(); ++a) {
        if (lengths[a].size() < kMostLengths) lengths[a].insert(turn.at(axes_[a]->name));
      }
    }
    std::optional<ops::AxisValues> smallest;
    std::int64_t least = INT64_MAX;
    for (std::size_t a = 0; a < axes_.size(); ++a) {
      for (std::size_t b = a + 1; b < axes_.size(); ++b) {
        for (const std::int64_t one : lengths[a]) {
          for (const std::int64_t two : lengths[b]) {
            ops::AxisValues axes = Moved(Moved(base, *axes_[a], one), *axes_[b], two);
            const std::int64_t elements = cases::TotalElements(instance_, axes);
            if (elements >= least || !holds(axes)) continue;
            least = elements;
            smallest = std::move(axes);
          }
        }
      }
    }
    return smallest;
  }

  /// Where numbers outgrow their formats: along each axis, the others small, or one of them as long as
  /// it gets.
  void Limits(const std::vector<ops::AxisValues>& bases) {
    std::vector<std::size_t> limits;
    for (const std::size_t d : shape_decisions_) {
      if (decisions_.IsLimit(d)) limits.push_back(d);
    }
    if (limits.empty() || bases.empty()) return;
    most_ += kMostSecond;
    for (const ops::Axis* axis : axes_) {
      LeapFrom(bases.back(), *axis, limits);
      for (const ops::Axis* other : axes_) {
        if (other != axis) LeapFrom(Moved(bases.back(), *other, other->max), *axis, limits);
      }
    }
    for (const std::size_t limit : limits) {
      if (!stop_.stop_requested()) Lengthen(limit, bases.back());
    }
  }

  /// Where two axes are not enough, or not the cheapest: one after the other as long as it gets, the last of them by no more than
  /// it takes; each axis first, before the longer or before the shorter ones. Constraints move the others.
  void Lengthen(std::size_t limit, const ops::AxisValues& base) {
    constexpr std::uint8_t kPast = 2;
    const auto is_past = [&](const ops::AxisValues& axes) { return CodeAt(limit, axes) == kPast; };
    if (axes_.size() < 3) return;
    most_ = std::max(most_, turns_.size() + 2 * axes_.size());
    for (const ops::Axis* const first : axes_) {
      for (const bool longer : {true, false}) {
        std::vector<const ops::Axis*> along = axes_;
        std::ranges::stable_sort(along, [&](const ops::Axis* a, const ops::Axis* b) {
          return longer ? a->max > b->max : a->max < b->max;
        });
        std::erase(along, first);
        along.insert(along.begin(), first);
        ops::AxisValues shape = base;
        for (const ops::Axis* const axis : along) {
          const auto with = [&](std::int64_t extent) {
            const auto solved = cases::SolveNear(instance_.op, axis->name, extent, shape);
            return solved && solved->at(axis->name) >= extent ? std::optional(*solved)
                                                              : std::nullopt;
          };
          const auto longest = with(axis->max);
          if (!longest) continue;
          if (!is_past(*longest)) {
            shape = *longest;
            continue;
          }
          const std::int64_t least = Least(axis->min, axis->max, [&](std::int64_t extent) {
            const auto one = with(extent);
            return one && is_past(*one);
          });
          const auto shortest = with(least);
          if (!shortest) break;
          shape = *shortest;
          // What constraints have moved may be shorter again.
          for (const ops::Axis* const other : axes_) {
            std::int64_t& extent = shape[other->name];
            const std::int64_t before = std::min(base.at(other->name), extent);
            extent = Least(before, extent, [&](std::int64_t shorter) {
              return is_past(Moved(shape, *other, shorter));
            });
          }
          AddTurn(shape);
          break;
        }
      }
    }
  }

  /// The least extent for which `holds`, which it does for `most`: by bisection.
  template <class Holds>
  static std::int64_t Least(std::int64_t low, std::int64_t most, Holds holds) {
    while (low < most) {
      const std::int64_t middle = low + (most - low) / 2;
      if (holds(middle)) {
        most = middle;
      } else {
        low = middle + 1;
      }
    }
    return most;
  }

  /// What hangs on several axes at once, where one of them is where something else turns.
  void Equations(const std::vector<ops::AxisValues>& bases) {
    if (bases.empty()) return;
    std::vector<std::size_t> equations;
    for (const std::size_t d : ordinary_) {
      if (DependsOnTwo(d, bases.back())) equations.push_back(d);
    }
    if (equations.empty()) return;
    constexpr std::size_t kMostStarts = 120;
    most_ = kMostTurns + kMostSecond;
    const std::vector<ops::AxisValues> starts(
        turns_.begin(),
        turns_.begin() + static_cast<std::ptrdiff_t>(std::min(turns_.size(), kMostStarts)));
    for (const ops::AxisValues& start : starts) {
      for (const ops::Axis* axis : axes_) LeapFrom(start, *axis, equations);
    }
  }

  bool DependsOnTwo(std::size_t decision, const ops::AxisValues& base) const {
    const auto gap_at = [&](const ops::AxisValues& axes) -> std::optional<double> {
      const auto point = decisions_.At(axes);
      const auto outcome = point ? decisions_.Of(decision, *point) : std::nullopt;
      return outcome ? std::optional(outcome->gap) : std::nullopt;
    };
    const auto here = gap_at(base);
    int depends = 0;
    for (const ops::Axis* axis : axes_) {
      const auto there = gap_at(Moved(base, *axis, base.at(axis->name) * 64));
      depends += here && there && *here != *there;
    }
    return depends > 1;
  }

  /// One by one along small extents: the first of each outcome.
  void Walk(Line& line) {
    const ops::Axis& axis = line.axis();
    std::vector<std::array<bool, 4>> seen(decisions_.size());
    const std::int64_t last = std::min(axis.max, axis.min + kWalk);
    for (std::int64_t value = axis.min; value <= last && !stop_.stop_requested(); ++value) {
      const Decisions::Point* const point = line.At(value);
      if (point == nullptr) continue;
      bool fresh = false;
      for (const std::size_t d : shape_decisions_) {
        if (decisions_.IsLimit(d) || (value > axis.min + kShortWalk && !decisions_.IsPeriodic(d)))
          continue;
        const std::uint8_t code = CodeOf(decisions_.Of(d, *point));
        fresh = fresh || !seen[d][code];
        seen[d][code] = true;
      }
      if (fresh) AddTurn(line.ShapeAt(value));
    }
  }

  void LeapFrom(const ops::AxisValues& base, const ops::Axis& axis,
                const std::vector<std::size_t>& of) {
    Line line(decisions_, base, axis);
    Leap(line, of);
  }
  /// In doublings, then between two of them where an outcome changes. What repeats changes all the
  /// time: the walk has seen it.
  void Leap(Line& line, const std::vector<std::size_t>& of) {
    constexpr int kMostChanges = 3;
    const ops::Axis& axis = line.axis();
    std::vector<std::int64_t> values;
    std::vector<const Decisions::Point*> points;
    const std::int64_t most = std::min<std::int64_t>(axis.max, std::int64_t{1} << 34);
    for (std::int64_t value = std::max<std::int64_t>(axis.min, 1);;
         value = std::min(2 * value, most)) {
      if (const Decisions::Point* const point = line.At(value)) {
        values.push_back(value);
        points.push_back(point);
      }
      if (value >= most) break;
    }
    for (const std::size_t d : of) {
      if (stop_.stop_requested()) return;
      std::vector<std::size_t> changes;
      std::uint8_t before = kUnknownOutcome;
      for (std::size_t i = 0; i < points.size() && changes.size() <= kMostChanges; ++i) {
        if (i > 0 && decisions_.IsAlike(d, *points[i - 1], *points[i])) continue;
        const std::uint8_t code = CodeOf(decisions_.Of(d, *points[i]));
        if (i > 0 && code != before) changes.push_back(i);
        before = code;
      }
      if (changes.size() > kMostChanges) continue;
      for (const std::size_t i : changes) Between(d, line, values[i - 1], values[i]);
    }
  }

  /// From < over = to >, as far as that happens between the two.
  void Between(std::size_t decision, Line& line, std::int64_t low, std::int64_t end) {
    const std::uint8_t last = line.CodeAt(decision, end);
    for (int change = 0; change < 3; ++change) {
      const std::uint8_t code = line.CodeAt(decision, low);
      if (code == last) return;
      std::int64_t high = end;
      while (high - low > 1) {
        const std::int64_t middle = Admitted(line, low + (high - low) / 2, high);
        if (middle >= high) break;
        (line.CodeAt(decision, middle) == code ? low : high) = middle;
      }
      for (const std::int64_t value : {low, high, Admitted(line, high + 1, line.axis().max)}) {
        if (value >= line.axis().min && value <= line.axis().max) AddTurn(line.ShapeAt(value));
      }
      low = high;
    }
  }

  /// The next extent that the op's constraints admit, below `end`, or `end`.
  static std::int64_t Admitted(Line& line, std::int64_t value, std::int64_t end) {
    constexpr std::int64_t kFar = 128;
    for (std::int64_t near = value; near < std::min(end, value + kFar); ++near) {
      if (line.At(near) != nullptr) return near;
    }
    return end;
  }

  std::uint8_t CodeAt(std::size_t decision, const ops::AxisValues& axes) {
    // Bisections of many decisions come to the same shapes.
    constexpr std::size_t kMostKept = 10'000;
    if (points_.size() > kMostKept) points_.clear();
    const auto [at, fresh] = points_.try_emplace(axes);
    std::optional<Decisions::Point>& point = at->second;
    if (fresh) point = decisions_.At(axes);
    return point ? CodeOf(decisions_.Of(decision, *point)) : kUnknownOutcome;
  }

  void AddTurn(const ops::AxisValues& axes) {
    if (turns_.size() < most_ && seen_.insert(axes).second) turns_.push_back(axes);
  }

  const ops::Instance& instance_;
  const Decisions& decisions_;
  std::stop_token stop_;
  std::vector<const ops::Axis*> axes_;
  std::vector<std::size_t> shape_decisions_;
  std::vector<std::size_t> ordinary_;  ///< Those that are no limits.
  std::vector<ops::AxisValues> turns_;
  std::size_t most_ = kMostTurns;
  std::set<ops::AxisValues> seen_;
  std::map<ops::AxisValues, std::optional<Decisions::Point>> points_;
};

}  // namespace

ops::AxisValues Moved(const ops::AxisValues& base, const ops::Axis& axis, std::int64_t value) {
  ops::AxisValues moved = base;
  moved[axis.name] = value;
  return moved;
}

std::vector<ops::AxisValues> BasesOf(const ops::Instance& instance) {
  const std::vector<const ops::Axis*> variables = VariablesOf(instance);
  std::vector<ops::AxisValues> bases;
  constexpr std::array<std::int64_t, 6> kUnlike = {5, 3, 7, 4, 6, 9};
  for (int kind = 0; kind < 3; ++kind) {
    ops::AxisValues wanted;
    for (std::size_t i = 0; i < variables.size(); ++i) {
      const std::int64_t value = kind == 0   ? variables[i]->min
                                 : kind == 1 ? 2
                                             : kUnlike[i % kUnlike.size()];
      wanted[variables[i]->name] = std::clamp(value, variables[i]->min, variables[i]->max);
    }
    const auto solved = cases::SolveAxes(instance.op, {}, wanted);
    if (solved && std::ranges::find(bases, *solved) == bases.end()) bases.push_back(*solved);
  }
  return bases;
}

std::vector<ops::AxisValues> TurnsOf(const ops::Instance& instance, const Decisions& decisions,
                                     std::stop_token stop) {
  return TurnFinder(instance, decisions, std::move(stop)).Run();
}

TurnsAhead::TurnsAhead(const ops::Instance& instance, const ops::LaunchPlan& plan,
                       const engine::CompiledKernel& compiled)
    : decisions_(instance, plan, compiled),
      turns_(std::async(std::launch::async, [this, &instance, stop = stop_.get_token()] {
        return TurnsOf(instance, decisions_, stop);
      })) {}

TurnsAhead::~TurnsAhead() { stop_.request_stop(); }

}  // namespace assay::campaign
