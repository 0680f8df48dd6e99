#include "validator/gates/campaign.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/rng.h"
#include "validator/cases/recipes.h"
#include "validator/cases/shapes.h"
#include "validator/gates/minimise.h"

namespace assay::gates {
namespace {

// Fixed, so that where a campaign ends does not depend on the number of processors.
constexpr std::size_t kBatch = 8;
constexpr std::size_t kBatchesAfterRefutation = 2;
constexpr std::size_t kEnoughDefects = 3;

bool Known(const std::vector<Hit>& hits, std::string_view gate, const Finding& finding) {
  return std::ranges::any_of(
      hits, [&](const Hit& hit) { return hit.gate == gate && SameDefect(hit.finding, finding); });
}

void KeepWorst(std::vector<Statistic>& kept, const Statistic& statistic) {
  const auto badness = [](const Statistic& s) {
    return s.limit != 0 ? std::fabs(s.value / s.limit) : std::fabs(s.value);
  };
  const auto found = std::ranges::find(kept, statistic.name, &Statistic::name);
  if (found == kept.end()) {
    kept.push_back(statistic);
  } else if (!(badness(statistic) <= badness(*found))) {
    *found = statistic;
  }
}

}  // namespace

Campaign::Campaign(GateContext& context) : context_(context) {}

double Campaign::StepsFor(const ops::AxisValues& axes) const {
  const std::int64_t elements = cases::TotalElements(context_.instance, axes);
  return static_cast<double>(elements) * std::max(steps_per_element_, 1.0);
}

Task Campaign::TaskFor(cases::Case value, std::string purpose) const {
  Task planned;
  const std::int64_t elements = cases::TotalElements(context_.instance, value.axes);
  planned.wants.max_steps = StepLimit(elements == INT64_MAX ? 0 : elements, steps_per_element_);
  planned.wants.determinism = IsDeterministic(context_.instance.op);
  planned.wants.coverage = true;
  planned.probe.case_ = std::move(value);
  planned.purpose = std::move(purpose);
  return planned;
}

void Campaign::Learn(const CaseRun& run) {
  if (run.error || run.report.stop != Stop::kCompleted || run.steps == 0) return;
  schedule_matters_ = schedule_matters_ || run.report.counters.used_atomics;
  const std::int64_t elements = cases::TotalElements(context_.instance, run.probe.case_.axes);
  // Tiny cases are all overhead: whole blocks run for a handful of elements.
  if (elements < 64 || elements == INT64_MAX) return;
  const double ratio = static_cast<double>(run.report.counters.steps) /
                       static_cast<double>(elements) /
                       static_cast<double>(1 + run.probe.prelude.size());
  steps_per_element_ = std::max(steps_per_element_, std::min(ratio, 5'000.0));
}

void Campaign::Gather(const Task& task, const CaseRun& run, Harvest& harvest) {
  ++harvest.cases;
  ++harvest.by_purpose[task.purpose];
  harvest.steps += run.steps;
  Learn(run);
  tried_.push_back(run.probe.case_);
  if (run.comparison) {
    for (const Statistic& statistic : run.comparison->statistics)
      KeepWorst(harvest.statistics, statistic);
  }
  for (const Gate& examiner : AllGates()) {
    if (examiner.examine == nullptr) continue;
    for (Finding& finding : examiner.examine(run)) {
      if (Known(harvest.hits, examiner.name, finding)) continue;
      harvest.hits.push_back({examiner.name, run.probe, std::move(finding), task.wants});
    }
  }
  const std::string reason = run.Inconclusive();
  if (!reason.empty() && harvest.inconclusive.empty()) {
    harvest.inconclusive =
        reason + " [" + cases::Describe(run.probe.case_, context_.instance) + "]";
  }
}

bool Campaign::Execute(const std::vector<Task>& planned, std::string_view gate, Harvest& harvest) {
  for (std::size_t start = 0; start < planned.size(); start += kBatch) {
    const std::size_t count = std::min(kBatch, planned.size() - start);
    const std::vector<CaseRun> runs = context_.CaseRunner().RunAll(
        std::span(planned).subspan(start, count), [&](std::size_t done) {
          const std::size_t at = start + done;
          context_.Report(
              gate, fmt::format("{}: case {} of {}", planned[at - 1].purpose, at, planned.size()),
              static_cast<double>(at) / static_cast<double>(planned.size()));
        });
    for (std::size_t i = 0; i < count; ++i) Gather(planned[start + i], runs[i], harvest);
    if (harvest.hits.empty()) {
      // More of what cannot be run proves nothing either.
      if (!harvest.inconclusive.empty()) return false;
      continue;
    }
    if (harvest.hits.size() >= kEnoughDefects) return false;
    if (harvest.batches_since_hit++ >= kBatchesAfterRefutation) return false;
  }
  return true;
}

void Campaign::Run() {
  using Wave = std::vector<Task> (Campaign::*)();
  constexpr Wave kWaves[] = {&Campaign::Regressions, &Campaign::Smoke, &Campaign::Shapes,
                             &Campaign::Values,      &Campaign::Long,  &Campaign::Surroundings};
  for (const Wave wave : kWaves) {
    std::vector<Task> planned = (this->*wave)();
    if (!harvest_.inconclusive.empty()) return;
    Trim(planned);
    if (!Execute(planned, "cases", harvest_)) return;
  }
}

// Leaves out the costliest probes of a wave where it would go beyond a quarter of the budget.
void Campaign::Trim(std::vector<Task>& planned) const {
  const double allowed = static_cast<double>(context_.effort.campaign_steps) / 4;
  const auto cost = [&](const Task& p) {
    return StepsFor(p.probe.case_.axes) * static_cast<double>(1 + p.probe.prelude.size());
  };
  double total = 0;
  for (const Task& p : planned) total += cost(p);
  while (total > allowed && planned.size() > 4) {
    const auto costliest = std::ranges::max_element(planned, {}, cost);
    total -= cost(*costliest);
    planned.erase(costliest);
  }
}

const std::vector<Counterexample>& Campaign::Counterexamples() {
  if (!minimised_) counterexamples_ = Minimise(context_, harvest_.hits, kEnoughDefects);
  minimised_ = true;
  return counterexamples_;
}

void Campaign::Fill(std::string_view gate, GateResult& result) {
  result.cases = harvest_.cases;
  result.steps = harvest_.steps;
  result.seeds = {context_.options.seed};
  const auto mine =
      std::ranges::count_if(harvest_.hits, [&](const Hit& hit) { return hit.gate == gate; });
  if (mine > 0) {
    result.status = GateStatus::kRefuted;
    for (const Counterexample& counterexample : Counterexamples()) {
      if (counterexample.gate == gate) result.counterexamples.push_back(counterexample);
    }
    result.reason = fmt::format("{} distinct finding{}", mine, mine == 1 ? "" : "s");
    return;
  }
  if (!harvest_.inconclusive.empty()) {
    SetInconclusive(result, harvest_.inconclusive);
    return;
  }
  if (!harvest_.hits.empty()) {
    // Refuted elsewhere before all cases ran: this gate has seen too little to pass.
    SetInconclusive(result,
                    fmt::format("only {} cases ran before another gate refuted", harvest_.cases));
    return;
  }
  result.status = GateStatus::kPassed;
  std::string kinds;
  for (const auto& [purpose, count] : harvest_.by_purpose) {
    kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", count, purpose);
  }
  result.reason = fmt::format("{} cases ({})", harvest_.cases, kinds);
}

std::vector<Task> Campaign::Regressions() {
  std::vector<Task> planned;
  for (const Counterexample& known : context_.options.regressions) {
    if (!known.case_ || known.op != context_.instance.op.name) continue;
    Task one = TaskFor(*known.case_, "regressions");
    one.probe = ProbeOf(known);
    one.probe.case_.origin = "regression";
    // The op may have changed since: what no longer fits it is no longer a case.
    if (!cases::Materialise(context_.instance, one.probe.case_)) continue;
    planned.push_back(std::move(one));
  }
  return planned;
}

std::vector<Task> Campaign::Smoke() {
  cases::ShapeRequest request{.max_elements = context_.effort.max_elements,
                              .count = context_.effort.shapes,
                              .seed = context_.options.seed,
                              .constants = cases::ConstantsOf(*context_.plan)};
  const auto shapes = cases::GenerateShapes(context_.instance, request);
  if (!shapes) {
    harvest_.inconclusive = ToString(shapes.error());
    return {};
  }
  for (const cases::ShapeChoice& shape : *shapes) shapes_.push_back(shape.axes);
  std::vector<Task> planned;
  for (const std::string_view recipe : {"exact", "plain"}) {
    for (std::size_t i = 0; i < std::min<std::size_t>(4, shapes_.size()); ++i) {
      planned.push_back(
          TaskFor(cases::MakeCase(context_.instance, *cases::FindRecipe(recipe), shapes_[i],
                                  DeriveSeed(context_.options.seed, "smoke") + i, "edge"),
                  "smoke"));
    }
  }
  return planned;
}

// Every shape with exact values, which need no tolerance, or with ordinary ones, in turn.
std::vector<Task> Campaign::Shapes() {
  std::vector<Task> planned;
  const std::uint64_t seed = DeriveSeed(context_.options.seed, "shapes");
  for (std::size_t i = 4; i < shapes_.size(); ++i) {
    const cases::Recipe& recipe = *cases::FindRecipe(i % 3 == 2 ? "plain" : "exact");
    planned.push_back(TaskFor(
        cases::MakeCase(context_.instance, recipe, shapes_[i], seed + i, "edge"), "shapes"));
  }
  return planned;
}

// Every recipe on shapes of middling size, then inputs that draw from different recipes.
std::vector<Task> Campaign::Values() {
  std::vector<ops::AxisValues> middling = shapes_;
  std::ranges::stable_sort(middling, {}, [&](const ops::AxisValues& axes) {
    return std::abs(cases::TotalElements(context_.instance, axes) - 1500);
  });
  std::vector<Task> planned;
  const std::uint64_t seed = DeriveSeed(context_.options.seed, "values");
  std::size_t number = 0;
  for (const cases::Recipe& recipe : cases::AllRecipes()) {
    if (!cases::Applies(recipe, context_.instance)) continue;
    for (std::size_t i = 0; i < std::min(context_.effort.recipe_shapes, middling.size()); ++i) {
      planned.push_back(TaskFor(
          cases::MakeCase(context_.instance, recipe,
                          middling[(number + i) % std::min<std::size_t>(middling.size(), 6)],
                          seed + number, "value"),
          "values"));
      ++number;
    }
  }
  for (std::size_t i = 0; i < context_.effort.mixed_cases; ++i) {
    planned.push_back(TaskFor(cases::MakeMixedCase(context_.instance, middling[i % middling.size()],
                                                   seed + 1000 + i, "random"),
                              "values"));
  }
  return planned;
}

// One axis as long as the budget allows, the others small: long sums, many blocks, hot rows.
std::vector<Task> Campaign::Long() {
  std::vector<Task> planned;
  const std::uint64_t seed = DeriveSeed(context_.options.seed, "long");
  for (const ops::Axis& axis : context_.instance.op.axes) {
    if (axis.kind != ops::Axis::Kind::kVariable) continue;
    ops::AxisValues small;
    for (const ops::Axis& other : context_.instance.op.axes)
      small[other.name] = other.name == axis.name ? axis.min : 4;
    // The largest power of two, less one, that fits.
    std::optional<ops::AxisValues> longest;
    for (std::int64_t value = 64; value <= std::min<std::int64_t>(axis.max, 1 << 24); value *= 2) {
      const auto solved = cases::SolveNear(context_.instance.op, axis.name, value - 1, small);
      if (!solved ||
          cases::TotalElements(context_.instance, *solved) > context_.effort.long_elements)
        break;
      if (StepsFor(*solved) > static_cast<double>(context_.effort.campaign_steps) / 16) break;
      longest = *solved;
    }
    if (!longest) continue;
    for (const std::string_view recipe : {"hot", "biased", "equal", "exact"}) {
      planned.push_back(TaskFor(cases::MakeCase(context_.instance, *cases::FindRecipe(recipe),
                                                *longest, seed + planned.size(), "long"),
                                "long"));
    }
  }
  return planned;
}

// The same cases under other schedules, with other poison, misaligned, after other calls, with
// perturbed approximations.
std::vector<Task> Campaign::Surroundings() {
  std::vector<Task> planned;
  Rng rng(DeriveSeed(context_.options.seed, "surroundings"));
  std::vector<cases::Case> pool = tried_;
  std::erase_if(pool, [&](const cases::Case& value) {
    const std::int64_t elements = cases::TotalElements(context_.instance, value.axes);
    return elements > 20'000 || elements < 8;
  });
  if (pool.empty()) return planned;
  const auto draw = [&]() -> const cases::Case& { return pool[rng.Below(pool.size())]; };
  const std::size_t rounds = context_.effort.schedules;
  using Policy = Schedule::Policy;
  constexpr Policy kPolicies[] = {Policy::kReversed, Policy::kPermuted, Policy::kPriorities};
  for (std::size_t i = 0; i < rounds * (schedule_matters_ ? 3 : 1); ++i) {
    Task one = TaskFor(draw(), "schedules");
    one.probe.schedule = {.policy = kPolicies[i % 3], .seed = rng.Next() % 1'000'000};
    planned.push_back(std::move(one));
  }
  constexpr std::uint8_t kPoisons[] = {0x00, 0x7f, 0x3c, 0x80};
  for (std::size_t i = 0; i < rounds; ++i) {
    Task one = TaskFor(draw(), "poison");
    one.probe.poison = kPoisons[i % std::size(kPoisons)];
    one.wants.determinism = false;
    planned.push_back(std::move(one));
    one = TaskFor(draw(), "perturbed");
    one.probe.perturbation_seed = 1 + rng.Next() % 1'000'000;
    one.wants.determinism = false;
    planned.push_back(std::move(one));
  }
  for (std::size_t i = 0; i < rounds; ++i) {
    const cases::Case judged = draw();
    Task one = TaskFor(judged, "repeated calls");
    one.wants.determinism = false;
    // In turn: the same call again and again; the same shape with other values before; another
    // shape before.
    cases::Case before = i % 3 == 2 ? draw() : judged;
    if (i % 3 == 1) before.seed ^= 0x5a5a;
    one.probe.prelude.assign(i % 3 == 0 ? 4 : 1, before);
    one.wants.max_steps *= 1 + one.probe.prelude.size();
    planned.push_back(std::move(one));
  }
  return planned;
}

}  // namespace assay::gates
