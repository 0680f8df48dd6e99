#include "validator/sanitize/sanitize.h"

#include <algorithm>

#include "validator/execution/contests.h"
#include "validator/findings/old_values.h"
#include "validator/sanitize/parts.h"

namespace assay::sanitize {
namespace {

/// Findings that are tried on smaller launches: those that a person reads first.
constexpr std::size_t kShrunkFindings = 4;

/// Values that a defect made up differ for that reason.
bool ExplainsDifferences(const Finding& finding) {
  return FamilyOf(finding.kind) == "race" || finding.kind == FindingKind::kUninitialisedUse;
}

class Exploration {
 public:
  Exploration(const Job& job, engine::Engine& engine, const Program& program)
      : job_(job), engine_(engine), execution_(Bind(job.plan, program)) {
    execution_.checks = job.checks;
    execution_.limits.max_steps = job.max_steps;
    execution_.target_sm = job.arch;
  }

  Result<Outcome> Explore() {
    Outcome outcome;
    Run plain;  // Of number 0.
    int wanted = std::max(1, job_.schedules);
    for (int number = 0; number < wanted; ++number) {
      execution_.schedule = ScheduleNumber(number, job_.seed);
      execution_.checks.order = number == 0;
      ASSAY_TRY(Run run, RunOnce(job_.plan, execution_, engine_));
      ++outcome.schedules;
      if (Worse(run.report.stop, outcome.stop)) {
        outcome.stop = run.report.stop;
        outcome.reason = run.report.reason;
      }
      ASSAY_TRY_VOID(Note(run, outcome.findings));
      if (number == 0) {
        outcome.counters = run.report.counters;
        if (job_.schedules == 0 && outcome.counters.used_atomics) wanted = kSchedulesForAtomics;
        plain = std::move(run);
      } else if (differences_.empty() && run.report.stop == Stop::kCompleted &&
                 plain.report.stop == Stop::kCompleted) {
        ASSAY_TRY(differences_, Compare(plain, run));
      }
      if (!outcome.complete()) break;
    }
    if (outcome.complete() && wanted > 1) ASSAY_TRY_VOID(TurnPairs(plain, outcome));
    if (differences_.empty()) differences_ = OrderedSums(job_.plan, plain.report);
    if (std::ranges::none_of(outcome.findings, ExplainsDifferences))
      outcome.findings.insert(outcome.findings.end(), differences_.begin(), differences_.end());
    SortAndMerge(outcome.findings);
    outcome.buffers = std::move(plain.buffers);
    return outcome;
  }

  Status ShrinkAll(Outcome& outcome) {
    outcome.smallest.resize(outcome.findings.size());
    for (std::size_t i = 0; i < std::min(outcome.findings.size(), kShrunkFindings); ++i) {
      const Finding& finding = outcome.findings[i];
      const auto seen = std::ranges::find_if(
          seen_, [&](const Seen& each) { return SameDefect(each.finding, finding); });
      if (seen == seen_.end()) continue;
      Execution execution = execution_;
      execution.schedule = seen->schedule;
      ASSAY_TRY(outcome.smallest[i],
                Shrink(job_.plan, std::move(execution), finding, seen->steps, engine_));
    }
    return {};
  }

 private:
  /// In which order a schedule and its cost showed a finding first.
  struct Seen {
    Finding finding;
    Schedule schedule;
    std::uint64_t steps = 0;
  };

  static bool Worse(Stop a, Stop b) {
    const auto rank = [](Stop stop) {
      return stop == Stop::kCompleted ? 0 : stop == Stop::kFault ? 1 : 2;
    };
    return rank(a) > rank(b);
  }

  /// The plain order, with one pair the other way round: spread over all that were noted.
  Status TurnPairs(const Run& plain, Outcome& outcome) {
    const std::vector<OrderPair>& pairs = plain.report.order.orders;
    outcome.orders = plain.report.order.pairs;
    if (plain.report.stop != Stop::kCompleted) return {};
    const std::size_t tried = std::min(kOrdersTried, pairs.size());
    for (std::size_t i = 0; i < tried && differences_.empty(); ++i) {
      execution_.schedule = plain.schedule;
      execution_.schedule.hold = pairs[i * pairs.size() / tried];
      ASSAY_TRY(const Run run, RunOnce(job_.plan, execution_, engine_));
      if (run.report.order.held) ++outcome.orders_tried;
      ASSAY_TRY_VOID(Note(run, outcome.findings));
      if (run.report.stop == Stop::kCompleted)
        differences_ = Differences(job_.plan, plain, run,
                                   ContestOf(plain.report.order, i * pairs.size() / tried));
    }
    return {};
  }

  /// Where old values were read, the same order of threads without them says whether they are what
  /// makes the difference.
  Result<std::vector<Finding>> Compare(const Run& plain, const Run& run) {
    std::vector<Finding> differences = Differences(job_.plan, plain, run);
    if (!differences.empty() && run.report.stale_reads.empty()) {
      ASSAY_TRY(std::vector<Finding> blamed, BlamePair(plain));
      if (!blamed.empty()) return blamed;
    }
    if (differences.empty() || run.report.stale_reads.empty()) return differences;
    execution_.schedule.stale = 0;
    ASSAY_TRY(const Run fresh, RunOnce(job_.plan, execution_, engine_));
    execution_.schedule = run.schedule;
    if (fresh.report.stop == Stop::kCompleted) {
      std::vector<Finding> others = Differences(job_.plan, plain, fresh);
      if (!others.empty()) return others;
    }
    return Blame(run.report, differences.front().message);
  }

  /// The differences that a single pair of accesses makes when it is run the other way round: of whole
  /// schedules nobody can say which of the pairs it was.
  Result<std::vector<Finding>> BlamePair(const Run& plain) {
    const OrderReport& order = plain.report.order;
    std::vector<Finding> blamed;
    if (!order.sums.empty() || order.contests.size() < 2) return blamed;
    const Schedule before = execution_.schedule;
    std::size_t tried = 0;
    for (const std::size_t number : OrdersToBlame(order)) {
      if (tried++ == kOrdersTried || !blamed.empty()) break;
      execution_.schedule = plain.schedule;
      execution_.schedule.hold = order.orders[number];
      ASSAY_TRY(const Run run, RunOnce(job_.plan, execution_, engine_));
      if (run.report.stop == Stop::kCompleted)
        blamed = Differences(job_.plan, plain, run, ContestOf(order, number));
    }
    execution_.schedule = before;
    return blamed;
  }

  Status Note(const Run& run, std::vector<Finding>& findings) {
    const Finding* fresh = nullptr;
    for (const Finding& finding : run.report.findings) {
      const bool known = std::ranges::any_of(
          seen_, [&](const Seen& each) { return SameDefect(each.finding, finding); });
      if (!known) seen_.push_back({finding, run.schedule, run.report.counters.steps});
      if (!known && fresh == nullptr && MayComeOfOldValues(finding)) fresh = &finding;
      findings.push_back(finding);
    }
    if (fresh != nullptr && !run.report.stale_reads.empty()) {
      execution_.schedule.stale = 0;
      ASSAY_TRY(const Run without, RunOnce(job_.plan, execution_, engine_));
      execution_.schedule = run.schedule;
      if (std::ranges::none_of(without.report.findings, [&](const Finding& finding) {
            return SameDefect(finding, *fresh);
          })) {
        for (Finding& finding : Blame(run.report, fresh->message))
          findings.push_back(std::move(finding));
      }
    }
    for (Finding& finding : Unwritten(job_.plan, run.report))
      findings.push_back(std::move(finding));
    return {};
  }

  const Job& job_;
  engine::Engine& engine_;
  Execution execution_;
  std::vector<Seen> seen_;
  std::vector<Finding> differences_;
};

}  // namespace

Schedule ScheduleNumber(int number, std::uint64_t seed) {
  constexpr Schedule::Policy kTurns[] = {Schedule::Policy::kReversed, Schedule::Policy::kPermuted,
                                         Schedule::Policy::kPriorities};
  if (number == 0) return {.policy = Schedule::Policy::kSequential, .seed = seed};
  // Every second round of turns lets loads return old values: the oldest, or by chance.
  const int turn = (number - 1) % static_cast<int>(std::size(kTurns));
  const int round = (number - 1) / static_cast<int>(std::size(kTurns));
  const std::uint32_t stale = round % 2 == 0 ? 0 : turn < 2 ? 100 : 50;
  return {.policy = kTurns[static_cast<std::size_t>(turn)],
          .seed = seed + static_cast<std::uint64_t>(number),
          .stale = stale};
}

Result<Run> RunOnce(const ops::SanitizePlan& plan, const Execution& execution,
                    engine::Engine& engine) {
  Run run{.schedule = execution.schedule, .report = {}, .buffers = {}};
  ASSAY_TRY(run.buffers, MakeBuffers(plan));
  std::vector<SharedMemory*> buffers;
  for (SharedMemory& memory : run.buffers) buffers.push_back(&memory);
  ASSAY_TRY(run.report, engine.Run(execution, buffers, engine::Trust::kCandidate));
  return run;
}

Result<Outcome> Sanitize(const Job& job, engine::Compiler& compiler, engine::Engine& engine,
                         engine::Engine* witness) {
  ASSAY_TRY(const Program program, Load(job, compiler));
  Exploration exploration(job, engine, program);
  ASSAY_TRY(Outcome outcome, exploration.Explore());
  outcome.smallest.resize(outcome.findings.size());
  if (job.shrink) ASSAY_TRY_VOID(exploration.ShrinkAll(outcome));
  if (witness != nullptr) {
    const bool comparable = outcome.stop == Stop::kCompleted;
    ASSAY_TRY(outcome.witness,
              Ask(*witness, job, Bind(job.plan, program), comparable ? &outcome.buffers : nullptr));
  }
  return outcome;
}

}  // namespace assay::sanitize
