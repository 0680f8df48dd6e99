#include "validator/campaign/campaign.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "ops/properties.h"
#include "validator/campaign/minimise.h"
#include "validator/campaign/orders.h"
#include "validator/campaign/parts.h"
#include "validator/campaign/slice.h"
#include "validator/cases/shapes.h"
#include "validator/engine/window.h"

namespace assay::campaign {
namespace {

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
      outgrowing_(trial.instance, trial.plan),
      has_small_shapes_(HasSmallShapes(trial.instance)),
      only_slices_(SmallestElements(trial.instance) > trial.effort.whole_elements) {}

Task Campaign::TaskFor(cases::Case value, std::string purpose) const {
  Task planned;
  const std::int64_t elements = cases::TotalElements(trial_.instance, value.axes);
  planned.wants.max_steps = StepLimit(elements == INT64_MAX ? 0 : elements, steps_per_element_,
                                      ThreadsOf(trial_.instance, trial_.plan, value.axes));
  // Of what can be cut a part runs then (Again).
  if (planned.wants.max_steps > kWholeSteps && !RunsWhole(value.axes))
    planned.wants.max_steps = kWholeSteps;
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
  else if (run.probe.ends_only) {
    const auto taken = static_cast<std::uint64_t>(static_cast<double>(run.steps) *
                                                  (only_slices_ ? DearFactor(run) : 1));
    harvest.part_steps += taken;
    part_steps_of_[task.wave] += taken;
  }
  const bool may_add =
      !run.report.order.sums.empty() || (run.orders > 0 && MayLock(trial_.compiled.facts.get()));
  if (task.wants.orders && may_add && run.nondeterminism.empty())
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
  const bool at_ends = run.probe.ends_only && !IsSlice(run.probe);
  if (fresh && !at_ends && harvest.cases > kBatch) fresh_.push_back(run.probe.case_);
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
  // What calls before it computed is of other shapes.
  if (run.probe.prelude.empty()) outgrowing_.Add(run.probe.case_.axes, run.report.numbers);
  NoteReach(run, harvest);
}

constexpr Campaign::Wave Campaign::kWaves[] = {
#define WAVE(Name, name, share, kept, least, several, whole, early, joins) \
  {name, &Campaign::Name, share, kept, least, several, whole, early, Joins::joins},
#include "validator/campaign/waves.def"
};

std::vector<const Campaign::Wave*> Campaign::Order() const {
  std::vector<const Wave*> order;
  for (const Wave& wave : kWaves) order.push_back(&wave);
  if (!has_small_shapes_) std::ranges::stable_partition(order, &Wave::early);
  return order;
}

void Campaign::Run() {
  // Slices of a wave may take so many times its share. What they take beyond, for they were estimated by far too little,
  // is not missing to the waves after it.
  constexpr double kTimesItsShare = 2;
  std::map<std::size_t, int> shares;  // Of waves that run in one go, by what they count as.
  std::size_t counts_as = 0;
  std::vector<Task> waiting;
  const auto joins = [this](const Wave& wave) {
    return wave.joins >= Joins::kAlways ||
           wave.joins == (only_slices_ ? Joins::kOfSlices : Joins::kOfWhole);
  };
  const std::vector<const Wave*> order = Order();
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Wave& wave = *order[i];
    const auto later = std::span(order).subspan(i + 1);
    std::vector<Task> planned = (this->*wave.plan)();
    if (!harvest_.inconclusive.empty()) return;
    if (wave.joins != Joins::kAsOne) ++counts_as;
    shares[counts_as] += wave.share;
    for (Task& task : planned) task.wave = counts_as;
    const bool whole = wave.whole && has_small_shapes_;
    const std::uint64_t before = harvest_.part_steps;
    if (!has_small_shapes_ && !RunTheTelling(planned, wave, later)) return;
    PlanBlocks(planned, wave.several);
    Trim(planned, waiting, wave, later, static_cast<double>(harvest_.part_steps - before));
    planned.insert(planned.begin(), std::make_move_iterator(waiting.begin()),
                   std::make_move_iterator(waiting.end()));
    waiting.clear();
    if (!later.empty() && joins(*later.front())) {
      waiting = std::move(planned);
      continue;
    }
    // What it is planned from hangs on no run.
    if (!later.empty() && later.front()->plan == &Campaign::Reached)
      turns_ = std::make_unique<TurnsAhead>(trial_.instance, trial_.plan, trial_.compiled);
    // Where no case is cheap, one that refutes has to do.
    const std::size_t after = whole               ? planned.size()
                              : has_small_shapes_ ? kBatchesAfterRefutation
                                                  : 0;
    if (!ExecuteDearLast(std::move(planned), after)) return;
    if (trial_.is_pointless && trial_.is_pointless()) return;
    if (whole) harvest_.batches_since_hit = 0;
    for (const auto& [number, share] : shares) {
      const double most =
          kTimesItsShare * share / 100 * static_cast<double>(trial_.effort.campaign_steps);
      if (!only_slices_)
        unforeseen_steps_ += std::max(static_cast<double>(part_steps_of_[number]) - most, 0.0);
    }
    shares.clear();
  }
}

void Campaign::Trim(std::vector<Task>& planned, const std::vector<Task>& waiting, const Wave& wave,
                    std::span<const Wave* const> later, double spent) {
  // Of what a wave plans for one purpose, that much runs whatever it costs: a purpose of which nothing
  // ran would be passed by saying so.
  constexpr std::ptrdiff_t kLeast = 3;
  constexpr double kSurely = 0.5;
  const std::ptrdiff_t least = only_slices_ ? wave.least : kLeast;
  const double hundredth = static_cast<double>(trial_.effort.campaign_steps) / 100;
  const auto cost = [&](const Task& p) {
    // Parts of a case have limits of their own, and take little of them. Where there is nothing else, they count
    // by what those before them took.
    if (p.probe.ends_only)
      return only_slices_ ? SliceStepsFor(p) * dear_factor_ : kNominalSliceSteps;
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
        (parts ? static_cast<double>(harvest_.part_steps) - unforeseen_steps_
               : static_cast<double>(harvest_.steps - harvest_.part_steps - harvest_.places_steps));
    for (const Wave* const other : later) {
      if (!parts || only_slices_) left -= other->kept * hundredth;
    }
    for (const Task& p : waiting) left -= counts(p) ? cost(p) : 0;
    const double share = std::max(wave.share * hundredth - (parts ? spent : 0), 0.0);
    // Of its share of parts a wave has as much, whatever those before it took: sizes are tried last.
    const double surely = parts && !only_slices_ ? kSurely * share : 0;
    const double allowed = std::clamp(left, surely, share);
    double total = 0;
    for (const Task& p : planned) total += counts(p) ? cost(p) : 0;
    while (total > allowed) {
      // Of those that cost about the same the last one: the most telling ones come first, and slices are estimated by few
      // samples.
      const double about = only_slices_ && parts ? 4 : 1;
      auto costliest = planned.end();
      for (auto p = planned.end(); p != planned.begin();) {
        --p;
        const bool may_go = counts(*p) && !p->sure &&
                            std::ranges::count(planned, p->purpose, &Task::purpose) > least_of(*p);
        if (may_go && (costliest == planned.end() || cost(*p) > about * cost(*costliest)))
          costliest = p;
      }
      if (costliest == planned.end()) break;
      total -= cost(*costliest);
      harvest_.ledger.Planned(costliest->purpose);
      LeaveOut(*costliest, kBeyondBudget, harvest_);
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
  // Who tries nothing huge knows nothing of it, and says so.
  if (gate == "memory" && trial_.effort.huge_shapes > 0) {
    for (const std::string& unknown : {outgrowing_.Unseen(), NeverJudged()}) {
      if (unknown.empty()) continue;
      SetInconclusive(result, unknown);
      return;
    }
  }
  // What was tried, against what was planned, stands in the ledger, once for all gates.
  result.status = verdict::GateStatus::kPassed;
}

}  // namespace assay::campaign
