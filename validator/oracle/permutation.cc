#include "validator/oracle/permutation.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <queue>
#include <utility>
#include <vector>

namespace assay::oracle {
namespace {

using Places = std::vector<std::size_t>;

struct Interval {
  double low = 0;
  double high = 0;
  std::size_t from = 0;  ///< Place of the truth.
};

Interval IntervalAt(const OutputTruth& truth, std::size_t i) {
  const double value = truth.value[i];
  const double allowance = truth.allowance[i];
  if (std::isinf(allowance)) return {-HUGE_VAL, HUGE_VAL, i};
  // NaN matches NaN, which sorts last.
  if (std::isnan(value)) return {HUGE_VAL, HUGE_VAL, i};
  return {value - allowance, value + allowance, i};
}

/// For the elements at `places` of `got`, where their truths stand: `from[place]`.
void MatchGroup(const OutputTruth& truth, const Tensor& got, const Places& places, Places& from) {
  const auto point = [&](std::size_t i) {
    const double value = got.At(static_cast<std::int64_t>(i));
    return std::isnan(value) ? HUGE_VAL : value;
  };
  Places points = places;
  std::ranges::stable_sort(points, {}, point);
  std::vector<Interval> intervals;
  for (const std::size_t i : places) intervals.push_back(IntervalAt(truth, i));
  std::ranges::stable_sort(intervals, {}, &Interval::low);
  const auto ends_later = [](const Interval& a, const Interval& b) { return a.high > b.high; };
  std::priority_queue<Interval, std::vector<Interval>, decltype(ends_later)> open(ends_later);
  Places alone, missed;
  std::size_t next = 0;
  for (const std::size_t i : points) {
    const double value = point(i);
    while (next < intervals.size() && intervals[next].low <= value) open.push(intervals[next++]);
    while (!open.empty() && open.top().high < value) {
      missed.push_back(open.top().from);
      open.pop();
    }
    if (open.empty()) {
      alone.push_back(i);
    } else {
      from[i] = open.top().from;
      open.pop();
    }
  }
  for (; !open.empty(); open.pop()) missed.push_back(open.top().from);
  for (; next < intervals.size(); ++next) missed.push_back(intervals[next].from);
  std::ranges::sort(missed);
  std::ranges::sort(alone);
  for (std::size_t k = 0; k < alone.size(); ++k) from[alone[k]] = missed[k];
}

}  // namespace

OutputTruth Matched(const ops::Relation& relation, const OutputTruth& truth,
                    const OutputTruth* keys, const Tensor& got) {
  const std::size_t count = truth.value.size();
  const std::size_t columns =
      truth.shape.empty() ? 1
                          : std::max<std::size_t>(1, static_cast<std::size_t>(truth.shape.back()));
  Places from(count);
  for (std::size_t row = 0; row * columns < count; ++row) {
    std::map<double, Places> groups;
    for (std::size_t i = row * columns; i < (row + 1) * columns; ++i) {
      const double key = keys == nullptr ? 0 : keys->value[i];
      from[i] = i;
      const bool stays =
          std::isnan(key) || (relation.padding && truth.value[i] == *relation.padding);
      if (!stays) groups[key].push_back(i);
    }
    for (const auto& [key, places] : groups) MatchGroup(truth, got, places, from);
  }
  OutputTruth matched = truth;
  for (std::size_t i = 0; i < count; ++i) {
    matched.value[i] = truth.value[from[i]];
    matched.allowance[i] = truth.allowance[from[i]];
    matched.typical[i] = truth.typical[from[i]];
    matched.independent[i] = truth.independent[from[i]];
    matched.contributions[i] = truth.contributions[from[i]];
  }
  // An order of addition belongs to a place.
  matched.in_order.clear();
  matched.in_order_fused.clear();
  matched.in_order_slack.clear();
  return matched;
}

}  // namespace assay::oracle
