#include "validator/campaign/reach.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <queue>
#include <string>
#include <utility>

#include "validator/campaign/reach_search.h"
#include "validator/campaign/turns.h"

namespace assay::campaign {
namespace {

// Sizes of the lists that are searched.
constexpr std::size_t kMostTried = 400;
constexpr std::size_t kMostPool = 4'000;   ///< Combinations of them.
constexpr std::size_t kMostDistinct = 64;  ///< Decisions that differ somewhere.
constexpr std::int64_t kSteps = 40;        ///< Steps away from a turn that are tried.
/// What an outcome is worth that no case had, in pairs that no case had.
constexpr int kWorthOfPlan = 200;
constexpr int kWorthOfHalfReached = 200;
constexpr int kWorthOfOne = 20;

}  // namespace

ReachedCases ShapeSearch::Run() {
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

void ShapeSearch::KeepDistinct() {
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
    const bool turns =
        std::ranges::any_of(outcomes, [&](std::uint8_t code) { return code != outcomes.front(); });
    if (!turns) continue;
    const int own = decisions_.IsOfPlan(d)                                     ? kWorthOfPlan
                    : request_.half_reached.contains(decisions_.BranchLine(d)) ? kWorthOfHalfReached
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

void ShapeSearch::MarkTried() {
  std::set<ops::AxisValues> marked;
  for (const ops::AxisValues& axes : request_.tried) {
    if (marked.size() >= kMostTried) break;
    if (!marked.insert(axes).second) continue;
    if (const auto point = PointAt(axes)) had_.Mark(OutcomesAt(*point, distinct_));
  }
}

void ShapeSearch::AddToPool(const ops::AxisValues& axes) {
  if (pool_.size() >= kMostPool || !pooled_.insert(axes).second) return;
  const auto point = PointAt(axes);
  if (!point || !Fits(axes)) return;
  pool_.push_back(
      {.axes = axes, .cost = request_.cost(axes), .outcomes = OutcomesAt(*point, distinct_)});
}

void ShapeSearch::FillPool() {
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

void ShapeSearch::PickShapes(ReachedCases& reached) {
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

void ShapeSearch::PickSeveralTiles(ReachedCases& reached) {
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
    for (std::uint8_t code = 0; code < kUnknownOutcome && places > 0; ++code) {
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

std::vector<Place> ShapeSearch::Places() const {
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

void ShapeSearch::PickValues(ReachedCases& reached) {
  std::ranges::move(
      CasesThatMeetValues(instance_, decisions_, value_decisions_, Places(), request_),
      std::back_inserter(reached.cases));
}

ReachedCases CasesThatReach(const ops::Instance& instance, const Decisions& decisions,
                            const ReachRequest& request) {
  return ShapeSearch(instance, decisions, request).Run();
}

}  // namespace assay::campaign
