#include "validator/campaign/reach.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <queue>
#include <utility>

#include "validator/campaign/outcomes_had.h"
#include "validator/campaign/reach_values.h"
#include "validator/campaign/turns.h"
#include "validator/cases/profiles.h"
#include "validator/cases/recipes.h"
#include "validator/cases/shapes.h"

namespace assay::campaign {
namespace {

// Sizes of the lists that are searched.
constexpr std::size_t kMostTried = 400;
constexpr std::size_t kMostPool = 4'000;   ///< Combinations of them.
constexpr std::size_t kMostDistinct = 64;  ///< Decisions that differ somewhere.
constexpr std::size_t kMostTooLarge = 4;
constexpr std::size_t kMostLarge = 2'000;  ///< Shapes beyond the budget, of two axes.
constexpr std::size_t kMostTogether = 4;
constexpr double kStepsTogether = 1e8;  ///< Of a block of each of them.
/// Of those of which only that is asked where they write.
constexpr std::int64_t kElementsTogether = std::int64_t{1} << 26;
/// Of those that cost something; what is cheap takes no place of theirs.
constexpr std::size_t kMostPastLimits = 8;
constexpr std::size_t kMostCheapPastLimits = 10;
constexpr double kCheap = 4e6;       ///< Steps.
constexpr std::int64_t kSteps = 40;  ///< Steps away from a turn that are tried.
/// What an outcome is worth that no case had, in pairs that no case had.
constexpr int kWorthOfPlan = 200;
constexpr int kWorthOfHalfReached = 200;
constexpr int kWorthOfOne = 20;

constexpr std::uint8_t kUnknown = kUnknownOutcome;

class Search {
 public:
  Search(const ops::Instance& instance, const Decisions& decisions, const ReachRequest& request)
      : instance_(instance), decisions_(decisions), request_(request) {
    for (const ops::Axis& axis : instance.op.axes) {
      if (axis.kind == ops::Axis::Kind::kVariable) axes_.push_back(&axis);
    }
    for (std::size_t i = 0; i < decisions.size(); ++i)
      (decisions.Input(i).empty() ? shape_decisions_ : value_decisions_).push_back(i);
  }

  ReachedCases Run() {
    ReachedCases reached;
    if (shape_decisions_.empty() && value_decisions_.empty()) return reached;
    turns_ = request_.turns ? *request_.turns : TurnsOf(instance_, decisions_);
    KeepDistinct();
    MarkTried();
    FillPool();
    PickShapes(reached);
    PickSeveralTiles(reached);
    PickTooLarge(reached);
    PickPastLimits(reached);
    PickTogether(reached);
    PickValues(reached);
    return reached;
  }

 private:
  struct Candidate {
    ops::AxisValues axes;
    double cost = 0;
    Outcomes outcomes;
  };

  std::optional<Decisions::Point> PointAt(const ops::AxisValues& axes) const {
    return decisions_.At(axes);
  }

  Outcomes OutcomesAt(const Decisions::Point& point, const std::vector<std::size_t>& of) const {
    Outcomes outcomes;
    outcomes.reserve(of.size());
    for (const std::size_t d : of) outcomes.push_back(CodeOf(decisions_.Of(d, point)));
    return outcomes;
  }

  /// Decisions that agree at all turns are one.
  void KeepDistinct() {
    std::vector<Decisions::Point> points;
    std::erase_if(turns_, [&](const ops::AxisValues& axes) {
      auto point = PointAt(axes);
      if (!point) return true;
      points.push_back(std::move(*point));
      elements_.push_back(cases::TotalElements(instance_, axes));
      return false;
    });
    std::map<Outcomes, std::size_t> known;
    std::vector<int> worth;
    for (const std::size_t d : shape_decisions_) {
      Outcomes outcomes;
      for (const Decisions::Point& point : points)
        outcomes.push_back(CodeOf(decisions_.Of(d, point)));
      const bool turns = std::ranges::any_of(
          outcomes, [&](std::uint8_t code) { return code != outcomes.front(); });
      if (!turns) continue;
      const int own = decisions_.IsOfPlan(d) ? kWorthOfPlan
                      : request_.half_reached.contains(decisions_.BranchLine(d))
                          ? kWorthOfHalfReached
                          : kWorthOfOne;
      const auto [at, fresh] = known.try_emplace(std::move(outcomes), distinct_.size());
      if (!fresh) {
        worth[at->second] = std::max(worth[at->second], own);
      } else if (distinct_.size() < kMostDistinct) {
        distinct_.push_back(d);
        at_turns_.push_back(at->first);
        worth.push_back(own);
      } else {
        known.erase(at);
      }
    }
    had_ = OutcomesHad(std::move(worth));
  }

  void MarkTried() {
    std::set<ops::AxisValues> marked;
    for (const ops::AxisValues& axes : request_.tried) {
      if (marked.size() >= kMostTried) break;
      if (!marked.insert(axes).second) continue;
      if (const auto point = PointAt(axes)) had_.Mark(OutcomesAt(*point, distinct_));
    }
  }

  void AddToPool(const ops::AxisValues& axes) {
    if (pool_.size() >= kMostPool || !pooled_.insert(axes).second) return;
    const auto point = PointAt(axes);
    if (!point || !Fits(axes)) return;
    pool_.push_back(
        {.axes = axes, .cost = request_.cost(axes), .outcomes = OutcomesAt(*point, distinct_)});
  }

  bool Fits(const ops::AxisValues& axes) const {
    return cases::TotalElements(instance_, axes) <= request_.max_elements &&
           request_.cost(axes) <= request_.steps / 4;
  }

  void FillPool() {
    for (const ops::AxisValues& axes : turns_) AddToPool(axes);
    // Axis values of the turns, combined two at a time; then small steps past the turns.
    std::map<std::string, std::set<std::int64_t>> values;
    for (const Candidate& candidate : pool_) {
      for (const auto& [name, value] : candidate.axes) values[name].insert(value);
    }
    for (const ops::AxisValues& base : BasesOf(instance_)) {
      for (std::size_t a = 0; a < axes_.size(); ++a) {
        for (std::size_t b = a + 1; b < axes_.size(); ++b) {
          for (const std::int64_t one : values[axes_[a]->name]) {
            for (const std::int64_t two : values[axes_[b]->name]) {
              if (pool_.size() >= kMostPool / 2) break;
              AddToPool(Moved(Moved(base, *axes_[a], one), *axes_[b], two));
            }
          }
        }
      }
    }
    const std::vector<ops::AxisValues> turns = turns_;
    for (std::int64_t step = 1; step <= kSteps; ++step) {
      for (const ops::AxisValues& turn : turns) {
        const auto longest = std::ranges::max_element(
            axes_, {}, [&](const ops::Axis* axis) { return turn.at(axis->name); });
        if (longest == axes_.end()) continue;
        const std::int64_t value = turn.at((*longest)->name) + step;
        if (value <= (*longest)->max) AddToPool(Moved(turn, **longest, value));
      }
    }
  }

  void PickShapes(ReachedCases& reached) {
    if (request_.shapes == 0) return;
    // A step costs as much as a share of the budget at least: tiny cases are alike.
    const double floor = request_.pair_steps / static_cast<double>(request_.shapes) + 1;
    const auto rank = [&](const Candidate& candidate, int gain) {
      return static_cast<double>(gain) / (candidate.cost + floor);
    };
    // Gains only fall: one that is still the largest when it is counted anew is the largest.
    struct Entry {
      double rank;
      std::size_t candidate;
      bool operator<(const Entry& other) const {
        return rank != other.rank ? rank < other.rank : candidate > other.candidate;
      }
    };
    std::priority_queue<Entry> queue;
    for (std::size_t i = 0; i < pool_.size(); ++i)
      queue.push({rank(pool_[i], had_.Gain(pool_[i].outcomes)), i});
    double left = request_.steps;
    double left_for_pairs = request_.pair_steps;
    while (!queue.empty() && picked_.size() < request_.shapes) {
      const Entry best = queue.top();
      queue.pop();
      const Candidate& candidate = pool_[best.candidate];
      const int gain = had_.Gain(candidate.outcomes);
      if (gain == 0) continue;
      const double now = rank(candidate, gain);
      if (!queue.empty() && now < queue.top().rank) {
        queue.push({now, best.candidate});
        continue;
      }
      const int single = had_.GainOfSingles(candidate.outcomes);
      if (candidate.cost > (single > 0 ? left : std::min(left, left_for_pairs))) continue;
      left -= candidate.cost;
      if (single == 0) left_for_pairs -= candidate.cost;
      had_.Mark(candidate.outcomes);
      picked_.push_back(best.candidate);
      reached.cases.push_back(Make(candidate.axes, reached.cases.size(), "exact"));
      if (single > 0 && candidate.cost < left / 8)
        reached.cases.push_back(Make(candidate.axes, reached.cases.size(), "plain"));
    }
  }

  /// Each outcome of a decision with several tiles along all axes that the plan divides: a numbering of tiles
  /// that goes wrong past the eighth row of them does so where there is more than one column.
  void PickSeveralTiles(ReachedCases& reached) {
    constexpr std::uint8_t kSeveral = 2;
    std::vector<std::size_t> quotients;  ///< Into distinct_.
    ops::AxisValues several;
    for (std::size_t i = 0; i < distinct_.size(); ++i) {
      const ops::AxisValues* const shape =
          decisions_.IsQuotient(distinct_[i]) ? SmallestWith(i, kSeveral) : nullptr;
      if (shape == nullptr) continue;
      quotients.push_back(i);
      for (const auto& [name, value] : *shape) several[name] = std::max(several[name], value);
    }
    double left = request_.steps / 4;
    std::size_t places = request_.shapes / 4;
    for (std::size_t i = 0; i < distinct_.size() && !quotients.empty(); ++i) {
      for (std::uint8_t code = 0; code < kUnknown && places > 0; ++code) {
        const ops::AxisValues* const shape = SmallestWith(i, code);
        if (shape == nullptr) continue;
        ops::AxisValues axes = *shape;
        for (const ops::Axis* axis : axes_) {
          const std::int64_t wanted = several[axis->name];
          if (axes.at(axis->name) < wanted) axes = Moved(axes, *axis, wanted);
        }
        const auto point = PointAt(axes);
        if (!point || cases::TotalElements(instance_, axes) > request_.max_elements) continue;
        const Outcomes outcomes = OutcomesAt(*point, distinct_);
        const double cost = request_.cost(axes);
        const bool is_new = std::ranges::any_of(quotients, [&](std::size_t quotient) {
          return outcomes[quotient] == kSeveral && !had_.HasBoth(i, code, quotient, kSeveral);
        });
        if (outcomes[i] != code || !is_new || cost > std::min(left, request_.steps / 16)) continue;
        left -= cost;
        --places;
        had_.Mark(outcomes);
        reached.cases.push_back(Make(axes, reached.cases.size(), "exact"));
      }
    }
  }

  cases::Case Make(const ops::AxisValues& axes, std::size_t number, std::string_view recipe) const {
    return cases::MakeCase(instance_, *cases::FindRecipe(recipe), axes, request_.seed + number,
                           "reached");
  }

  double PartCost(const ops::AxisValues& axes) const {
    return request_.part_cost ? request_.part_cost(axes)
                              : static_cast<double>(cases::TotalElements(instance_, axes));
  }

  /// Of the turns at which a decision, by its place in distinct_, comes out so, the least by `cost`, of turns by number; or
  /// null.
  template <class Cost>
  const ops::AxisValues* LeastWith(std::size_t decision, std::uint8_t code,
                                   const Cost& cost) const {
    std::optional<std::size_t> least;
    for (std::size_t turn = 0; turn < turns_.size(); ++turn) {
      if (at_turns_[decision][turn] == code && (!least || cost(turn) < cost(*least))) least = turn;
    }
    return least ? &turns_[*least] : nullptr;
  }

  /// The cheapest turn at which a number has outgrown its format, or null.
  const ops::AxisValues* CheapestPast(std::size_t limit) const {
    constexpr std::uint8_t kPast = 2;
    return LeastWith(limit, kPast, [&](std::size_t turn) { return PartCost(turns_[turn]); });
  }

  /// The smallest turn at which a decision comes out so, or null.
  const ops::AxisValues* SmallestWith(std::size_t decision, std::uint8_t code) const {
    return LeastWith(decision, code, [&](std::size_t turn) { return elements_[turn]; });
  }

  /// The smallest first: what is past at a large one as well has a shape of its own, by no more than it takes.
  void PickPastLimits(ReachedCases& reached) {
    constexpr std::uint8_t kPast = 2;
    struct Limit {
      std::size_t number;  ///< Into distinct_.
      const ops::AxisValues* cheapest;
      std::int64_t elements;
    };
    std::vector<Limit> limits;
    for (std::size_t i = 0; i < distinct_.size(); ++i) {
      if (!decisions_.IsLimit(distinct_[i])) continue;
      const ops::AxisValues* const cheapest = CheapestPast(i);
      if (cheapest != nullptr)
        limits.push_back({i, cheapest, cases::TotalElements(instance_, *cheapest)});
    }
    std::ranges::stable_sort(limits, {}, &Limit::elements);
    std::size_t cheap = 0, dear = 0;
    for (const Limit& limit : limits) {
      if (had_.Has(limit.number, kPast)) continue;
      const bool is_cheap = PartCost(*limit.cheapest) <= kCheap;
      std::size_t& count = is_cheap ? cheap : dear;
      if (count >= (is_cheap ? kMostCheapPastLimits : kMostPastLimits)) continue;
      ++count;
      reached.past_limits.push_back(*limit.cheapest);
      if (const auto point = PointAt(*limit.cheapest)) had_.Mark(OutcomesAt(*point, distinct_));
    }
  }

  void PickTooLarge(ReachedCases& reached) {
    for (std::size_t i = 0; i < distinct_.size(); ++i) {
      if (!decisions_.IsOfPlan(distinct_[i])) continue;
      for (std::uint8_t code = 0; code < kUnknown; ++code) {
        if (had_.Has(i, code) || reached.too_large.size() >= kMostTooLarge) continue;
        const ops::AxisValues* const cheapest = SmallestWith(i, code);
        if (cheapest == nullptr ||
            std::ranges::find(reached.too_large, *cheapest) != reached.too_large.end())
          continue;
        reached.too_large.push_back(*cheapest);
        if (const auto point = PointAt(*cheapest)) had_.Mark(OutcomesAt(*point, distinct_));
      }
    }
  }

  /// Of these lengths of an axis the least with each outcome that changes along it.
  std::vector<std::int64_t> Telling(const ops::Axis& axis, const std::set<std::int64_t>& lengths,
                                    const ops::AxisValues& base) const {
    std::set<std::pair<std::size_t, std::uint8_t>> seen;
    std::vector<std::int64_t> telling;
    for (const std::int64_t length : lengths) {
      const auto point = PointAt(Moved(base, axis, length));
      if (!point) continue;
      const Outcomes outcomes = OutcomesAt(*point, distinct_);
      bool fresh = false;
      for (std::size_t d = 0; d < outcomes.size(); ++d)
        fresh = seen.insert({d, outcomes[d]}).second || fresh;
      if (fresh) telling.push_back(length);
    }
    return telling;
  }

  /// These two axes at lengths that tell something, beyond the budget.
  std::vector<Candidate> LargeAlong(const ops::Axis& a, const ops::Axis& b,
                                    const ops::AxisValues& base) const {
    std::map<std::string, std::set<std::int64_t>> lengths;
    for (const ops::AxisValues& turn : turns_) {
      for (const auto& [name, value] : turn) lengths[name].insert(value);
    }
    std::vector<Candidate> large;
    const std::vector<std::int64_t> along = Telling(b, lengths[b.name], base);
    for (const std::int64_t one : Telling(a, lengths[a.name], base)) {
      for (const std::int64_t two : along) {
        ops::AxisValues axes = Moved(Moved(base, a, one), b, two);
        const auto point = PointAt(axes);
        if (!point || Fits(axes) || large.size() >= kMostLarge) continue;
        const double cost = PartCost(axes);
        large.push_back({std::move(axes), cost, OutcomesAt(*point, distinct_)});
      }
    }
    return large;
  }

  /// A second turn of blocks, and what only long rows do: neither has to be large, and both are. Only of outcomes that
  /// came before, each with others: what only large shapes have is picked above.
  void PickTogether(ReachedCases& reached) {
    const std::vector<ops::AxisValues> bases = BasesOf(instance_);
    if (!request_.part_cost || bases.empty()) return;
    std::vector<std::vector<Candidate>> large;
    for (std::size_t a = 0; a < axes_.size(); ++a) {
      for (std::size_t b = a + 1; b < axes_.size(); ++b)
        large.push_back(LargeAlong(*axes_[a], *axes_[b], bases.back()));
    }
    double left = kStepsTogether;
    const auto worth = [&](const Candidate& candidate) {
      constexpr double kFloor = 1e7;  // What a slice takes in any case.
      return candidate.cost > left || had_.GainOfSingles(candidate.outcomes) > 0
                 ? 0.0
                 : had_.Gain(candidate.outcomes) / (candidate.cost + kFloor);
    };
    while (reached.together.size() < kMostTogether) {
      const Candidate* best = nullptr;
      for (const std::vector<Candidate>& some : large) {
        const auto most = std::ranges::max_element(some, {}, worth);
        if (most != some.end() && (best == nullptr || worth(*most) > worth(*best))) best = &*most;
      }
      if (best == nullptr || worth(*best) == 0) break;
      left -= best->cost;
      had_.Mark(best->outcomes);
      reached.together.push_back(best->axes);
    }
    // Where it writes is told without its sums: for each two axes the largest shape, where both are long.
    for (const std::vector<Candidate>& some : large) {
      const auto size = [&](const Candidate& candidate) {
        const std::int64_t elements = cases::TotalElements(instance_, candidate.axes);
        return elements > kElementsTogether ? 0 : elements;
      };
      const auto best = std::ranges::max_element(some, {}, size);
      if (best == some.end() || size(*best) == 0 || had_.Gain(best->outcomes) == 0 ||
          reached.written_together.size() >= kMostTogether)
        continue;
      had_.Mark(best->outcomes);
      reached.written_together.push_back(best->axes);
    }
  }

  std::vector<Place> Places() const {
    constexpr std::size_t kMostPlaces = 96;
    std::vector<Place> places;
    const auto add = [&](const ops::AxisValues& axes) {
      if (places.size() >= kMostPlaces) return;
      if (auto point = PointAt(axes)) {
        Outcomes outcomes = OutcomesAt(*point, distinct_);
        places.push_back({std::move(*point), axes, std::move(outcomes)});
      }
    };
    for (const ops::AxisValues& base : BasesOf(instance_)) add(base);
    for (const std::size_t picked : picked_) add(pool_[picked].axes);
    for (const Candidate& candidate : pool_) {
      if (candidate.cost <= request_.steps / 64) add(candidate.axes);
    }
    return places;
  }

  void PickValues(ReachedCases& reached) {
    std::ranges::move(
        CasesThatMeetValues(instance_, decisions_, value_decisions_, Places(), request_),
        std::back_inserter(reached.cases));
  }

  const ops::Instance& instance_;
  const Decisions& decisions_;
  const ReachRequest& request_;
  std::vector<const ops::Axis*> axes_;
  std::vector<std::size_t> shape_decisions_;
  std::vector<std::size_t> value_decisions_;
  std::vector<ops::AxisValues> turns_;
  std::vector<std::int64_t> elements_;  ///< By turn.
  std::vector<std::size_t> distinct_;   ///< Decisions whose outcomes are told apart,
  std::vector<Outcomes> at_turns_;      ///< and these, by turn.
  OutcomesHad had_{{}};
  std::vector<Candidate> pool_;
  std::set<ops::AxisValues> pooled_;
  std::vector<std::size_t> picked_;
};

}  // namespace

ReachedCases CasesThatReach(const ops::Instance& instance, const Decisions& decisions,
                            const ReachRequest& request) {
  return Search(instance, decisions, request).Run();
}

}  // namespace assay::campaign
