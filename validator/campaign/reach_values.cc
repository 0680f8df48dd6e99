#include "validator/campaign/reach_values.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "validator/campaign/turns.h"
#include "validator/cases/profiles.h"
#include "validator/cases/recipes.h"
#include "validator/cases/shapes.h"

namespace assay::campaign {
namespace {

/// The element at which a decision comes out even, if it turns on elements at all.
std::optional<double> Solve(const Decisions& decisions, std::size_t decision,
                            const Decisions::Point& point, bool whole, double most) {
  const auto gap = [&](double element) { return decisions.Of(decision, point, element); };
  const auto at_zero = gap(0);
  if (!at_zero) return std::nullopt;
  const auto even = [&](double element) {
    if (!(element >= (whole ? 0 : -HUGE_VAL)) || element > most) return false;
    const auto outcome = gap(element);
    return outcome && outcome->sign == 0;
  };
  // Secants settle what is linear at once.
  double x0 = 0;
  double y0 = at_zero->gap;
  double x1 = 1;
  for (int round = 0; round < 8; ++round) {
    const auto y1 = gap(x1);
    if (!y1) break;
    if (even(x1)) break;
    if (y1->gap == y0) break;
    const double next = x1 - y1->gap * (x1 - x0) / (y1->gap - y0);
    x0 = x1;
    y0 = y1->gap;
    x1 = whole ? std::round(next) : next;
    if (!std::isfinite(x1)) return std::nullopt;
  }
  const bool turns = std::ranges::any_of(std::array{1.0, 2.0, 100.0, -1.0, 1e4}, [&](double x) {
    const auto outcome = gap(x);
    return outcome && outcome->gap != at_zero->gap;
  });
  if (!turns) return std::nullopt;
  if (even(x1)) return x1;
  for (std::int64_t x = 1; x <= 4096 && static_cast<double>(x) <= most; ++x) {
    if (even(static_cast<double>(x))) return static_cast<double>(x);
  }
  return even(0) ? std::optional<double>(0) : std::nullopt;
}

std::int64_t BoundOf(const ops::TensorSpec& spec, const ops::AxisValues& axes) {
  const auto bound = axes.find(spec.domain.of);
  return bound == axes.end() ? 1 : bound->second;
}

/// A place where an index meets what it is compared with, for that is past the end of all tables so far: the
/// cheapest of them with a table that is long enough.
std::optional<std::pair<ops::AxisValues, double>> WithALongerTable(
    const ops::Instance& instance, const Decisions& decisions, std::size_t decision,
    const ops::TensorSpec& spec, std::span<const Place> places, const ReachRequest& request) {
  const ops::Axis* const table = instance.op.FindAxis(spec.domain.of);
  if (table == nullptr || table->kind != ops::Axis::Kind::kVariable) return std::nullopt;
  // The smallest of them, for a value that solves nothing is looked for one by one.
  constexpr std::size_t kMost = 6;
  std::optional<std::pair<ops::AxisValues, double>> best;
  double least = request.steps / 4;
  for (const Place& place : places.first(std::min(places.size(), kMost))) {
    const auto x =
        Solve(decisions, decision, place.point, true, static_cast<double>(table->max - 1));
    if (!x) continue;
    const auto wanted = std::min(static_cast<std::int64_t>(*x) + 2, table->max);
    const auto axes = cases::SolveNear(instance.op, table->name, wanted, place.axes);
    if (!axes || axes->at(table->name) < wanted ||
        cases::TotalElements(instance, *axes) > request.max_elements)
      continue;
    const double cost = request.cost(*axes);
    if (cost >= least) continue;
    least = cost;
    best = {*axes, *x};
  }
  return best;
}

}  // namespace

std::vector<cases::Case> CasesThatMeetValues(const ops::Instance& instance,
                                             const Decisions& decisions,
                                             std::span<const std::size_t> of,
                                             std::span<const Place> places,
                                             const ReachRequest& request) {
  std::vector<cases::Case> made;
  std::set<std::pair<std::string, std::pair<double, ops::AxisValues>>> known;
  for (const std::size_t d : of) {
    const ops::TensorSpec* spec = instance.op.FindInput(decisions.Input(d));
    if (spec == nullptr || spec->is_scalar || spec->IsGenerated()) continue;
    const bool index = cases::ClassOf(*spec, instance.TypeOf(*spec)) == cases::InputClass::kIndex;
    const bool whole = !IsFloat(instance.TypeOf(*spec));
    std::vector<std::optional<double>> elements;
    for (const Place& place : places) {
      const double most =
          index ? static_cast<double>(BoundOf(*spec, place.point.axes) - 1) : HUGE_VAL;
      elements.push_back(Solve(decisions, d, place.point, whole, most));
    }
    const auto aim = [&](const ops::AxisValues& axes, double x) {
      known.insert({spec->name, {x, axes}});
      cases::Case& aimed =
          made.emplace_back(cases::MakeCase(instance, *cases::FindRecipe("plain"), axes,
                                            request.seed + 1'000 + made.size(), "reached"));
      aimed.profiles[spec->name] = {
          .kind = "literal", .parameters = {}, .literal = {x, x + 1, x - 1, x, x, x + 1, x - 1}};
    };
    const bool nowhere =
        std::ranges::none_of(elements, [](const auto& element) { return element.has_value(); });
    if (index && nowhere && made.size() < request.values) {
      const auto longer = WithALongerTable(instance, decisions, d, *spec, places, request);
      if (longer && !known.contains({spec->name, {longer->second, longer->first}}))
        aim(longer->first, longer->second);
    }
    // With each outcome of each decision on shapes once, as far as that goes.
    std::vector<bool> met(places.empty() ? 0 : 3 * places.front().outcomes.size(), false);
    for (std::size_t mine = 0; mine < std::max<std::size_t>(2, request.values / 4); ++mine) {
      std::size_t best = places.size();
      int most_new = mine == 0 ? -1 : 0;
      for (std::size_t p = 0; p < places.size(); ++p) {
        if (!elements[p] || known.contains({spec->name, {*elements[p], places[p].axes}})) continue;
        int fresh = 0;
        const Outcomes& outcomes = places[p].outcomes;
        for (std::size_t i = 0; i < outcomes.size(); ++i)
          fresh += outcomes[i] != kUnknownOutcome && !met[i * 3 + outcomes[i]];
        if (fresh <= most_new) continue;
        most_new = fresh;
        best = p;
      }
      if (best == places.size() || made.size() >= request.values) break;
      const Place& place = places[best];
      for (std::size_t i = 0; i < place.outcomes.size(); ++i) {
        if (place.outcomes[i] != kUnknownOutcome) met[i * 3 + place.outcomes[i]] = true;
      }
      aim(place.axes, *elements[best]);
    }
  }
  return made;
}

}  // namespace assay::campaign
