// Shapes beyond the budget, of which slices run, ends, or where they write alone.
#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "validator/campaign/reach_search.h"
#include "validator/campaign/turns.h"

namespace assay::campaign {
namespace {

constexpr std::size_t kMostTooLarge = 4;  ///< Of the plan's decisions,
constexpr std::size_t kMostOfProgram =
    6;  ///< and of the program's, where a block takes no more steps than that.
constexpr double kMostOfAPart = 1e8;
/// What lies beyond is tried past the limits of formats, with all that there is for it.
constexpr std::int64_t kMostElements = std::int64_t{1} << 30;
constexpr std::size_t kMostLarge = 2'000;  ///< Shapes of two axes.
constexpr std::size_t kMostTogether = 4;
constexpr double kStepsTogether = 1e8;  ///< Of a block of each of them.
/// Of those of which only that is asked where they write.
constexpr std::int64_t kElementsTogether = std::int64_t{1} << 26;
/// Of those that cost something; what is cheap takes no place of theirs.
constexpr std::size_t kMostPastLimits = 8;
constexpr std::size_t kMostCheapPastLimits = 10;
constexpr double kCheap = 4e6;  ///< Steps.
/// The outcome of a number that has outgrown its format.
constexpr std::uint8_t kPast = 2;

}  // namespace

const ops::AxisValues* ShapeSearch::CheapestPast(std::size_t limit) const {
  return LeastWith(limit, kPast, [&](std::size_t turn) { return PartCost(turns_[turn]); });
}

void ShapeSearch::PickPastLimits(ReachedCases& reached) {
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

void ShapeSearch::PickTooLarge(ReachedCases& reached) {
  // Those of the plan first.
  for (const bool of_plan : {true, false}) {
    const std::size_t most = reached.too_large.size() + (of_plan ? kMostTooLarge : kMostOfProgram);
    for (std::size_t i = 0; i < distinct_.size(); ++i) {
      if (decisions_.IsOfPlan(distinct_[i]) != of_plan || decisions_.IsLimit(distinct_[i]) ||
          (!of_plan && decisions_.IsQuotient(distinct_[i])))
        continue;
      for (std::uint8_t code = 0; code < kUnknownOutcome; ++code) {
        if (had_.Has(i, code) || reached.too_large.size() >= most) continue;
        const ops::AxisValues* const cheapest = SmallestWith(i, code);
        if (cheapest == nullptr ||
            (!of_plan && (Fits(*cheapest) || PartCost(*cheapest) > kMostOfAPart ||
                          cases::TotalElements(instance_, *cheapest) > kMostElements)) ||
            std::ranges::find(reached.too_large, *cheapest) != reached.too_large.end())
          continue;
        reached.too_large.push_back(*cheapest);
        if (const auto point = PointAt(*cheapest)) had_.Mark(OutcomesAt(*point, distinct_));
      }
    }
  }
}

std::vector<std::int64_t> ShapeSearch::Telling(const ops::Axis& axis,
                                               const std::set<std::int64_t>& lengths,
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

std::vector<ShapeSearch::Candidate> ShapeSearch::LargeAlong(const ops::Axis& a, const ops::Axis& b,
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

void ShapeSearch::PickTogether(ReachedCases& reached) {
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

}  // namespace assay::campaign
