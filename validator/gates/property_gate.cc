// The property gate: metamorphic properties that the op declares (validator/campaign/properties.h),
// checked on small cases of several kinds.
#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <vector>

#include "base/rng.h"
#include "ops/properties.h"
#include "validator/campaign/campaign.h"
#include "validator/campaign/in_order.h"
#include "validator/campaign/minimise.h"
#include "validator/campaign/properties.h"
#include "validator/cases/recipes.h"
#include "validator/cases/shrink.h"
#include "validator/gates/gate.h"

namespace assay::gates {
namespace {

// Sums that are rounded and such that are exact, neighbours of other magnitudes, repeated indices.
constexpr std::array<std::string_view, 4> kRecipes = {"plain", "mixed", "exact", "hot"};

// Where bits must agree there is no truth to compute, and only the last bits may tell.
constexpr std::uint64_t kExactFactor = 8;

// Of the campaign's steps, what more than the ordinary number of cases may cost, of all properties together.
constexpr std::uint64_t kExactShare = 5;

// Of the campaign's steps, what one case of a property may cost; and how many such shapes are enough.
constexpr double kCostlyShare = 100;
constexpr std::size_t kFewestCheap = 8;

// Cases that are checked before those in front of them are looked at.
constexpr std::size_t kAhead = 4;

// Small shapes with at least two of something, so that there are other rows. The campaign's shapes
// vary one axis after another, from short to long: whoever takes the first few meets only tiny rows,
// so they are taken in steps of about the golden section.
std::vector<ops::AxisValues> SmallShapes(GateContext& context) {
  constexpr std::int64_t kMostElements = 6'000;
  std::vector<ops::AxisValues> shapes, costly;
  for (const ops::AxisValues& axes : context.Cases().shapes()) {
    const std::int64_t elements = cases::TotalElements(context.instance, axes);
    const bool several =
        std::ranges::any_of(axes, [](const auto& axis) { return axis.second > 1; });
    if (elements > kMostElements || !several) continue;
    const bool cheap = context.Cases().StepsFor(axes) <=
                       static_cast<double>(context.effort.campaign_steps) / kCostlyShare;
    (cheap ? shapes : costly).push_back(axes);
  }
  // Whoever starts hundreds of threads for a row pays for each of them, however small the shape.
  if (shapes.size() < kFewestCheap) shapes.insert(shapes.end(), costly.begin(), costly.end());
  std::size_t step = std::max<std::size_t>(1, shapes.size() * 618 / 1000);
  while (std::gcd(step, shapes.size()) > 1) ++step;
  std::vector<ops::AxisValues> spread;
  for (std::size_t i = 0; i < shapes.size(); ++i)
    spread.push_back(shapes[i * step % shapes.size()]);
  return spread;
}

void Refute(GateContext& context, const ops::Property& property, cases::Probe probe,
            const Finding& guilty, verdict::GateResult& result) {
  const cases::StillFails still_fails = [&](std::span<const cases::Probe> probes) {
    std::vector<bool> fails;
    for (const cases::Probe& each : probes) {
      const auto check = campaign::CheckProperty(context.instance, property, each,
                                                 context.CaseRunner(), context.tools.oracle);
      fails.push_back(check && std::ranges::any_of(check->findings, [&](const Finding& finding) {
                        return SameDefect(finding, guilty);
                      }));
    }
    return fails;
  };
  const cases::Shrunk shrunk = cases::Shrink(context.instance, std::move(probe), still_fails,
                                             {.max_trials = context.effort.shrink_trials});
  const auto check = campaign::CheckProperty(context.instance, property, shrunk.probe,
                                             context.CaseRunner(), context.tools.oracle);
  if (!check) return SetInconclusive(result, ToString(check.error()));
  verdict::Counterexample counterexample = TextCounterexample(context, "property", check->findings);
  counterexample.probe = shrunk.probe;
  counterexample.description = cases::Describe(shrunk.probe.case_, context.instance);
  counterexample.property = ops::PropertyText(property);
  result.status = verdict::GateStatus::kRefuted;
  result.reason = ops::PropertyText(property) + " does not hold";
  result.counterexamples.push_back(std::move(counterexample));
}

// A run of a property that was not clean is a case like any other: all gates look at it. False: it
// only had more to do than such runs may take, and as a case it is clean.
bool Examine(GateContext& context, const cases::Probe& trouble, bool unending,
             verdict::GateResult& result) {
  campaign::Task task = context.Cases().TaskFor(trouble.case_, "property twins");
  task.probe = trouble;
  campaign::Harvest harvest;
  context.Cases().Execute({task}, "property", harvest);
  context.ledger.Add(harvest.ledger);
  campaign::Minimised minimised = campaign::Minimise(context.Trial(), harvest.hits, 1);
  if (minimised.counterexamples.empty()) {
    if (unending && harvest.hits.empty() && harvest.inconclusive.empty()) return false;
    SetInconclusive(result, harvest.inconclusive.empty()
                                ? "a transformed case could not be compared [" +
                                      cases::Describe(trouble.case_, context.instance) + "]"
                                : harvest.inconclusive);
    return true;
  }
  result.status = verdict::GateStatus::kRefuted;
  result.reason = "a transformed case shows what no other case did";
  result.counterexamples = std::move(minimised.counterexamples);
  return true;
}

}  // namespace

void RunPropertyGate(GateContext& context, verdict::GateResult& result) {
  std::vector<ops::Property> properties = context.instance.op.properties;
  // The campaign varies the surroundings.
  std::erase_if(properties, [](const ops::Property& property) {
    const ops::PropertyRow* row = ops::FindPropertyRow(property.name);
    return row == nullptr || row->of_surroundings;
  });
  if (properties.empty()) {
    result.status = verdict::GateStatus::kSkipped;
    result.reason = "the op declares no metamorphic property";
    return;
  }
  const campaign::Harvest& harvest = context.Cases().harvest();
  if (!harvest.hits.empty() || !harvest.inconclusive.empty()) {
    return SetInconclusive(result, "not checked: the cases already tell");
  }
  const std::vector<ops::AxisValues> shapes = SmallShapes(context);
  if (shapes.empty()) {
    // Constant extents may leave no shape that could be spelled out. That is said, and what the
    // cases have shown stands.
    for (const ops::Property& property : properties) {
      const std::string wave = "property " + ops::PropertyText(property);
      context.ledger.Planned(wave);
      context.ledger.LeaveOut(wave, "no shape of the op is small enough to be spelled out", "");
    }
    result.status = verdict::GateStatus::kSkipped;
    result.reason = "no shape of the op is small enough to be spelled out";
    return;
  }
  const campaign::Runner& runner = context.CaseRunner();
  const std::uint64_t seed = DeriveSeed(context.options.seed, "properties");
  result.seeds = {context.options.seed};
  std::string names;
  std::uint64_t tried = 0;
  // Of the cases as they stand, by those properties that came before.
  std::vector<std::shared_ptr<const campaign::CaseRun>> known(
      shapes.size() + kExactFactor * context.effort.property_cases);
  for (const ops::Property& property : properties) {
    const std::string text = ops::PropertyText(property);
    const std::string wave = "property " + text;
    std::uint64_t applied = 0;
    std::uint64_t wanted = context.effort.property_cases;
    std::uint64_t beyond_budget = 0;
    std::uint64_t left = context.effort.campaign_steps / kExactShare / properties.size();
    // A case that does not fit is drawn anew; what counts is how many of those wanted were found.
    std::string unfit;
    std::string example;
    bool too_slow = false;
    // As many at once as are missing, so that none is checked that nobody asks for.
    bool ended = false;
    for (std::size_t next = 0; next < shapes.size() + wanted && applied < wanted && !ended;) {
      const std::size_t first = next;
      const std::size_t count =
          std::min<std::size_t>(wanted - applied, shapes.size() + wanted - first);
      const auto probe_of = [&](std::size_t i) {
        cases::Probe probe;
        probe.case_ =
            cases::MakeCase(context.instance, *cases::FindRecipe(kRecipes[i % kRecipes.size()]),
                            shapes[i % shapes.size()], seed + i, "value");
        return probe;
      };
      const auto check_one = [&](std::size_t nth) {
        return campaign::CheckProperty(context.instance, property, probe_of(first + nth), runner,
                                       context.tools.oracle, known.at(first + nth));
      };
      const auto take = [&](std::size_t nth, const Result<campaign::PropertyCheck>& check) {
        next = first + nth + 1;
        ended = true;  // Unless this one is as it should be.
        if (!check) {
          SetInconclusive(result, ToString(check.error()));
          return false;
        }
        result.steps += check->steps;
        left -= std::min(left, check->steps + check->known_steps);
        if (check->base) known.at(first + nth) = check->base;
        if (check->trouble) {
          if (Examine(context, *check->trouble, check->unending, result)) {
            context.ledger.Planned(wave, applied);
            return false;
          }
          too_slow = true;
          unfit = "no end within the steps that a case of a property may take";
          example = cases::Describe(check->trouble->case_, context.instance);
          ended = false;
          return true;
        }
        if (check->applied) {
          ++applied;
          context.ledger.Examined(wave);
        } else {
          unfit = check->not_applied;
          example = cases::Describe(probe_of(first + nth).case_, context.instance);
        }
        if (check->exact && beyond_budget == 0)
          wanted = kExactFactor * context.effort.property_cases;
        if (left == 0 && wanted > std::max(applied, context.effort.property_cases)) {
          beyond_budget = wanted - std::max(applied, context.effort.property_cases);
          wanted -= beyond_budget;
        }
        if (!check->findings.empty()) {
          context.ledger.Planned(wave, applied);
          Refute(context, property, probe_of(first + nth), check->findings.front(), result);
          return false;
        }
        ended = false;
        return applied < wanted;
      };
      campaign::MakeInOrder(count, runner.jobs(), kAhead, check_one, take);
    }
    if (ended) return;
    result.cases += applied;
    context.ledger.Planned(wave, wanted);
    context.ledger.LeaveOut(wave, unfit, example, wanted - std::min(wanted, applied));
    context.ledger.Planned(wave, beyond_budget);
    context.ledger.LeaveOut(wave, "beyond the budget of emulated instructions", "", beyond_budget);
    tried += applied;
    // Cases that fit the property and that only this candidate could not run: it is not proven.
    if (applied == 0 && too_slow)
      return SetInconclusive(
          result, "no case of the property " + text + " ended within the steps that it may take");
    // One that no case fits stands in the ledger, and decides nothing by itself.
    if (applied > 0) names += (names.empty() ? "" : ", ") + text;
  }
  if (tried == 0) {
    result.status = verdict::GateStatus::kSkipped;
    result.reason = "no case fits any of the op's properties";
    return;
  }
  result.status = verdict::GateStatus::kPassed;
  result.reason = names;
}

}  // namespace assay::gates
