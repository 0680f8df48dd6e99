#include "validator/campaign/campaign.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <numeric>

#include "ops/properties.h"
#include "validator/campaign/minimise.h"
#include "validator/campaign/parts.h"
#include "validator/campaign/slice.h"
#include "validator/cases/profiles.h"
#include "validator/cases/shapes.h"
#include "validator/engine/window.h"

namespace assay::campaign {
namespace {

// Where a campaign may end: fixed, so that it does not depend on the number of processors.
constexpr std::size_t kBatch = 8;
static_assert(kBatch <= Runner::kAhead);
constexpr std::size_t kEnoughDefects = 3;
// What a case is granted once the limit learned from tiny ones was too small, and how often it is
// halved when that is too little as well.
constexpr std::uint64_t kGenerousSteps = 400'000'000;
constexpr int kMostHalved = 8;
constexpr std::int64_t kSmallElements = 1024;

Hit* FindKnown(std::vector<Hit>& hits, std::string_view gate, const Finding& finding) {
  const auto found = std::ranges::find_if(
      hits, [&](const Hit& hit) { return hit.gate == gate && SameDefect(hit.finding, finding); });
  return found == hits.end() ? nullptr : &*found;
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

Campaign::Campaign(const Trial& trial)
    : trial_(trial),
      has_small_shapes_(HasSmallShapes(trial.instance)),
      only_slices_(SmallestElements(trial.instance) > trial.effort.whole_elements) {}

Task Campaign::TaskFor(cases::Case value, std::string purpose) const {
  Task planned;
  const std::int64_t elements = cases::TotalElements(trial_.instance, value.axes);
  planned.wants.max_steps = StepLimit(elements == INT64_MAX ? 0 : elements, steps_per_element_,
                                      ThreadsOf(trial_.instance, trial_.plan, value.axes));
  planned.wants.determinism = ops::IsDeterministic(trial_.instance.op);
  planned.wants.coverage = true;
  planned.probe.ends_only = elements != INT64_MAX && !FitsWhole(value.axes);
  planned.probe.case_ = std::move(value);
  if (planned.probe.ends_only) MakeAffordable(planned.probe.case_);
  planned.purpose = std::move(purpose);
  return planned;
}

void Campaign::Gather(const Task& task, const CaseRun& run, Harvest& harvest) {
  ++harvest.cases;
  harvest.steps += run.steps;
  if (run.probe.places_only)
    harvest.places_steps += run.steps;
  else if (run.probe.ends_only)
    harvest.part_steps += static_cast<std::uint64_t>(static_cast<double>(run.steps) *
                                                     (only_slices_ ? IdleFactor(run) : 1));
  if (task.wants.orders && !run.report.order.sums.empty() && run.nondeterminism.empty())
    hidden_sums_.push_back(run.probe.case_.axes);
  harvest.orders += run.orders;
  harvest.orders_tried += run.orders_tried;
  if (!run.probe.ends_only) {
    Learn(run);
    tried_.push_back(run.probe.case_);
  } else if (IsSlice(run.probe) && !run.probe.places_only && tried_.empty()) {
    LearnOfSlice(run);
  }
  // What ran and was given up, its results never looked at, has reached nothing.
  const bool fresh = run.left_out.empty() && coverage_.Add(run.report.coverage);
  if (fresh && harvest.cases > kBatch) fresh_.push_back(run.probe.case_);
  if (run.comparison) {
    for (const Statistic& statistic : run.comparison->statistics)
      KeepWorst(harvest.statistics, statistic);
    for (const auto& [output, growth] : run.comparison->growth)
      harvest.growth[output].Merge(growth);
    const std::string where = run.comparison->profiles.empty()
                                  ? std::string()
                                  : cases::Describe(run.probe.case_, trial_.instance);
    for (const auto& [output, profile] : run.comparison->profiles) {
      ErrorProfile described = profile;
      described.where = where;
      const auto [known, first] = harvest.profiles.emplace(output, described);
      if (!first) known->second.Merge(described);
    }
  }
  for (const Examiner& examiner : trial_.examiners) {
    for (Finding& finding : examiner.examine(run)) {
      Hit* known = FindKnown(harvest.hits, examiner.gate, finding);
      if (known == nullptr) {
        Hit hit{examiner.gate, run.probe, std::move(finding), task.wants, run.steps};
        hit.worst = WorstOf({}, hit.finding, run.probe.case_, trial_.instance);
        harvest.hits.push_back(std::move(hit));
        continue;
      }
      known->worst = WorstOf(known->worst, finding, run.probe.case_, trial_.instance);
      // The simplest of its cases is the best start for shrinking, unless it shows less of a race.
      const RaceReach reach = RaceReachOf(finding), known_reach = RaceReachOf(known->finding);
      const bool simpler =
          run.probe.prelude.size() <= known->probe.prelude.size() &&
          cases::ShortlexLess(trial_.instance, run.probe.case_, known->probe.case_);
      if (reach > known_reach || (reach == known_reach && simpler))
        *known = {examiner.gate, run.probe, std::move(finding),
                  task.wants,    run.steps, known->worst};
    }
  }
  NoteEnd(run, harvest);
  if (run.left_out == kBlockTooLong && run.steps > kMostSliceSteps / 2) ++harvest.too_long;
  if ((run.left_out == kBlockTooLong || run.left_out == kAllTakeTooLong) &&
      run.steps >= kLongSliceSteps)
    too_long_.push_back({run.probe.case_.axes, run.steps});
  const std::string reason = run.Inconclusive();
  if (!reason.empty() && harvest.inconclusive.empty()) {
    harvest.inconclusive = reason + " [" + cases::Describe(run.probe.case_, trial_.instance) + "]";
  }
  if (!run.left_out.empty() && harvest.left_out.empty()) harvest.left_out = run.left_out;
  if (!reason.empty() || !run.left_out.empty())
    return LeaveOut(task, reason.empty() ? run.left_out : reason, harvest);
  ++harvest.examined;
  if (run.comparison) ++harvest.compared;
  harvest.ledger.Examined(task.purpose);
  NoteReach(run, harvest);
}

CaseRun Campaign::Again(Task& task, CaseRun run, Harvest& harvest) const {
  const auto unending = [](const CaseRun& each) {
    return !each.error && each.left_out.empty() && each.plan_findings.empty() &&
           each.report.stop == Stop::kStepLimit && each.report.findings.empty();
  };
  if (IsSlice(task.probe) && run.left_out == kBlockTooLong) {
    // What is long is the axis that it was made for: the others need not be.
    cases::Case& value = task.probe.case_;
    const auto longest =
        std::ranges::max_element(value.axes, {}, [](const auto& axis) { return axis.second; });
    if (longest == value.axes.end()) return run;
    ops::AxisValues shortest;
    for (const ops::Axis& axis : trial_.instance.op.axes) shortest[axis.name] = axis.min;
    const auto narrow =
        cases::SolveNear(trial_.instance.op, longest->first, longest->second, shortest);
    if (!narrow || *narrow == value.axes) return run;
    Task narrower = task;
    narrower.probe.case_.axes = *narrow;
    EstimateBlocks(narrower);
    // As much as this took is not spent again on what seems to take as long.
    if (narrower.wants.seems_long && run.steps >= kLongSliceSteps) return run;
    LeaveOut(task, fmt::format("{}; one with shorter other axes ran in its place", run.left_out),
             harvest);
    harvest.ledger.Planned(task.purpose);
    task = std::move(narrower);
    return trial_.runner.Run(task.probe, task.wants);
  }
  if (task.probe.ends_only || !task.probe.prelude.empty() || !unending(run)) return run;
  if (task.wants.max_steps < kGenerousSteps) {
    task.wants.max_steps = kGenerousSteps;
    run = trial_.runner.Run(task.probe, task.wants);
  }
  for (int halved = 0; halved < kMostHalved && unending(run); ++halved) {
    cases::Case& value = task.probe.case_;
    const bool spelled_out = std::ranges::any_of(
        value.profiles, [](const auto& profile) { return profile.second.kind == "literal"; });
    const auto longest =
        std::ranges::max_element(value.axes, {}, [](const auto& axis) { return axis.second; });
    // A small case that has no end by then is not merely costly.
    if (spelled_out || longest == value.axes.end() || longest->second < 2 ||
        cases::TotalElements(trial_.instance, value.axes) < kSmallElements)
      break;
    const auto smaller =
        cases::SolveNear(trial_.instance.op, longest->first, longest->second / 2, value.axes);
    if (!smaller || smaller->at(longest->first) >= longest->second) break;
    LeaveOut(task,
             fmt::format("no end within {} instructions; a smaller case ran in its place",
                         task.wants.max_steps),
             harvest);
    harvest.ledger.Planned(task.purpose);
    value.axes = *smaller;
    run = trial_.runner.Run(task.probe, task.wants);
  }
  return run;
}

std::vector<std::size_t> Campaign::LongestFirst(const std::vector<Task>& planned) const {
  std::vector<double> cost;
  for (const Task& task : planned) cost.push_back(CostOf(task));
  std::vector<std::size_t> order(planned.size());
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t first = 0; first < order.size(); first += kBatch) {
    const auto begin = order.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end =
        order.begin() + static_cast<std::ptrdiff_t>(std::min(first + kBatch, order.size()));
    std::stable_sort(begin, end, [&](std::size_t a, std::size_t b) { return cost[a] > cost[b]; });
  }
  return order;
}

bool Campaign::Execute(const std::vector<Task>& planned, std::string_view gate, Harvest& harvest,
                       std::size_t batches_after_refutation) {
  for (const Task& task : planned) harvest.ledger.Planned(task.purpose);
  // Those that do not run because the judgement is decided, or can come to nothing, are accounted
  // for as well.
  const auto end_before = [&](std::size_t next, std::string_view why) {
    for (std::size_t i = next; i < planned.size(); ++i) LeaveOut(planned[i], why, harvest);
    return false;
  };
  bool ended = false;
  const auto take = [&](std::size_t i, CaseRun first) {
    const std::size_t done = i + 1;
    Task task = planned[i];
    Gather(task, Again(task, std::move(first), harvest), harvest);
    trial_.Report(gate, fmt::format("{}: case {} of {}", task.purpose, done, planned.size()),
                  static_cast<double>(done) / static_cast<double>(planned.size()));
    if (done % kBatch != 0 && done != planned.size()) return true;
    if (harvest.hits.empty()) {
      // More of what cannot be run proves nothing either.
      if (harvest.inconclusive.empty()) return true;
      ended = true;
      return end_before(done, "another case proved inconclusive");
    }
    if (harvest.hits.size() < kEnoughDefects &&
        harvest.batches_since_hit++ < batches_after_refutation)
      return true;
    ended = true;
    return end_before(done, "the candidate was refuted already");
  };
  trial_.runner.RunInOrder(planned, take, LongestFirst(planned));
  return !ended;
}

constexpr Campaign::Wave Campaign::kWaves[] = {
#define WAVE(Name, name, share, kept, least, several, whole, joins) \
  {name, &Campaign::Name, share, kept, least, several, whole, Joins::joins},
#include "validator/campaign/waves.def"
};

void Campaign::Run() {
  std::vector<Task> waiting;
  const auto joins = [this](const Wave& wave) {
    return wave.joins == Joins::kAlways || (wave.joins == Joins::kOfSlices && only_slices_);
  };
  for (const Wave& wave : kWaves) {
    std::vector<Task> planned = (this->*wave.plan)();
    if (!harvest_.inconclusive.empty()) return;
    const bool whole = wave.whole && has_small_shapes_;
    const std::uint64_t before = harvest_.part_steps;
    if (!has_small_shapes_ && !RunTheTelling(planned, wave)) return;
    PlanBlocks(planned, wave.several);
    Trim(planned, waiting, wave, static_cast<double>(harvest_.part_steps - before));
    planned.insert(planned.begin(), std::make_move_iterator(waiting.begin()),
                   std::make_move_iterator(waiting.end()));
    waiting.clear();
    if (&wave != std::end(kWaves) - 1 && joins(*(&wave + 1))) {
      waiting = std::move(planned);
      continue;
    }
    // Where no case is cheap, one that refutes has to do.
    const std::size_t after = whole               ? planned.size()
                              : has_small_shapes_ ? kBatchesAfterRefutation
                                                  : 0;
    if (!ExecuteDearLast(std::move(planned), after)) return;
    if (trial_.is_pointless && trial_.is_pointless()) return;
    if (whole) harvest_.batches_since_hit = 0;
  }
}

bool Campaign::ExecuteDearLast(std::vector<Task> planned, std::size_t batches_after_refutation) {
  // So many at a time: the next ones know whether these took too long.
  constexpr std::size_t kAtOnce = 2;
  const auto cheap = [this](const Task& task) {
    return !IsSlice(task.probe) || !task.wants.of_blocks ||
           LeastStepsFor(task) <= static_cast<double>(kLongSliceSteps) / 2;
  };
  const auto dear = std::stable_partition(planned.begin(), planned.end(), cheap);
  std::vector<Task> some(std::make_move_iterator(planned.begin()), std::make_move_iterator(dear));
  std::vector<Task> others(std::make_move_iterator(dear), std::make_move_iterator(planned.end()));
  bool goes_on = Execute(some, "memory", harvest_, batches_after_refutation);
  for (std::size_t i = 0; i < others.size(); i += kAtOnce) {
    some.clear();
    for (std::size_t j = i; j < std::min(i + kAtOnce, others.size()); ++j) {
      EstimateBlocks(others[j]);
      some.push_back(std::move(others[j]));
    }
    if (goes_on) {
      goes_on = Execute(some, "memory", harvest_, batches_after_refutation);
      continue;
    }
    for (const Task& task : some) {
      harvest_.ledger.Planned(task.purpose);
      LeaveOut(task, "the judgement was decided already", harvest_);
    }
  }
  return goes_on;
}

bool Campaign::RunTheTelling(std::vector<Task>& planned, const Wave& wave) {
  // One, for a first guess; then some of those that the guess lets pass.
  constexpr std::array<std::size_t, 2> kTelling = {1, kBatch / 2};
  std::size_t until = 0;
  for (const std::size_t count : kTelling) {
    until += count;
    if (harvest_.cases >= until || planned.empty()) continue;
    PlanBlocks(planned, wave.several);
    if (count > 1) Trim(planned, {}, wave, static_cast<double>(harvest_.part_steps));
    const auto end = planned.begin() + static_cast<std::ptrdiff_t>(std::min(count, planned.size()));
    std::vector<Task> first(std::make_move_iterator(planned.begin()), std::make_move_iterator(end));
    planned.erase(planned.begin(), end);
    if (!Execute(first, "memory", harvest_, 0)) return false;
  }
  return true;
}

void Campaign::Trim(std::vector<Task>& planned, const std::vector<Task>& waiting, const Wave& wave,
                    double spent) {
  // Of what a wave plans for one purpose, that much runs whatever it costs: a purpose of which nothing
  // ran would be passed by saying so.
  constexpr std::ptrdiff_t kLeast = 2;
  const std::ptrdiff_t least = only_slices_ ? wave.least : kLeast;
  const double hundredth = static_cast<double>(trial_.effort.campaign_steps) / 100;
  const auto cost = [&](const Task& p) {
    // Parts of a case have limits of their own, and take little of them. Where there is nothing else, they count
    // by what those before them took.
    if (p.probe.ends_only)
      return only_slices_ ? SliceStepsFor(p) * idle_factor_ : kNominalSliceSteps;
    return WholeStepsFor(p.probe.case_.axes) * static_cast<double>(1 + p.probe.prelude.size());
  };
  // Where each takes a twentieth of all that there is, one for each purpose has to do.
  const auto least_of = [&](const Task& p) {
    return only_slices_ && cost(p) > 5 * hundredth ? 1 : least;
  };
  // Parts of cases have a budget of their own: where blocks cannot be left out, one of them may take as
  // much as everything else.
  for (const bool parts : {false, true}) {
    // Where a program writes costs next to nothing.
    const auto counts = [&](const Task& p) {
      return p.probe.ends_only == parts && !p.probe.places_only;
    };
    double left =
        100 * hundredth -
        static_cast<double>(parts ? harvest_.part_steps
                                  : harvest_.steps - harvest_.part_steps - harvest_.places_steps);
    for (const Wave& other : kWaves) {
      if (&other > &wave && (!parts || only_slices_)) left -= other.kept * hundredth;
    }
    for (const Task& p : waiting) left -= counts(p) ? cost(p) : 0;
    const double share = wave.share * hundredth - (parts ? spent : 0);
    const double allowed = std::clamp(left, 0.0, std::max(share, 0.0));
    double total = 0;
    for (const Task& p : planned) total += counts(p) ? cost(p) : 0;
    while (total > allowed) {
      // Of those that cost about the same the last one: the most telling ones come first, and slices are estimated by few
      // samples.
      const double about = only_slices_ && parts ? 4 : 1;
      auto costliest = planned.end();
      for (auto p = planned.end(); p != planned.begin();) {
        --p;
        const bool may_go =
            counts(*p) && std::ranges::count(planned, p->purpose, &Task::purpose) > least_of(*p);
        if (may_go && (costliest == planned.end() || cost(*p) > about * cost(*costliest)))
          costliest = p;
      }
      if (costliest == planned.end()) break;
      total -= cost(*costliest);
      harvest_.ledger.Planned(costliest->purpose);
      LeaveOut(*costliest, "beyond the budget of emulated instructions", harvest_);
      planned.erase(costliest);
    }
  }
}

const std::vector<verdict::Counterexample>& Campaign::Counterexamples() {
  if (minimised_) return counterexamples_;
  minimised_ = true;
  Minimised minimised = Minimise(trial_, harvest_.hits, kEnoughDefects);
  counterexamples_ = std::move(minimised.counterexamples);
  // What does not come again under the limits of a replay refutes nothing.
  for (const Hit& hit : minimised.unconfirmed) {
    std::erase_if(harvest_.hits, [&](const Hit& each) {
      return each.gate == hit.gate && SameDefect(each.finding, hit.finding);
    });
    if (harvest_.inconclusive.empty()) {
      harvest_.inconclusive =
          fmt::format("a finding did not come again when its case was replayed: {} [{}]",
                      hit.finding.message, cases::Describe(hit.probe.case_, trial_.instance));
    }
  }
  return counterexamples_;
}

void Campaign::Fill(std::string_view gate, verdict::GateResult& result) {
  result.cases = harvest_.cases;
  result.steps = harvest_.steps;
  result.seeds = {trial_.seed};
  if (!harvest_.hits.empty()) Counterexamples();
  const auto mine =
      std::ranges::count_if(harvest_.hits, [&](const Hit& hit) { return hit.gate == gate; });
  if (mine > 0) {
    result.status = verdict::GateStatus::kRefuted;
    for (const verdict::Counterexample& counterexample : Counterexamples()) {
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
    SetInconclusive(result, "another gate refuted before all cases ran");
    return;
  }
  const bool compares = gate == "numeric" || gate == "precision";
  if (harvest_.cases > 0 && (compares ? harvest_.compared : harvest_.examined) == 0) {
    // Nothing was seen to go wrong, for nothing was seen.
    SetInconclusive(
        result, fmt::format("no case could be {}: {}", compares ? "compared" : "judged",
                            harvest_.left_out.empty() ? "all were left out" : harvest_.left_out));
    return;
  }
  if (const std::string unknown = UnknownEnd(harvest_); gate == "memory" && !unknown.empty()) {
    // From some size on, and at no larger one, nobody has seen who writes the end.
    SetInconclusive(result, fmt::format("{} [{}], and no larger case shows that it is written",
                                        kUnknownEnd, unknown));
    return;
  }
  // What was tried, against what was planned, stands in the ledger, once for all gates.
  result.status = verdict::GateStatus::kPassed;
}

}  // namespace assay::campaign
