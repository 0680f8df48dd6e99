// One case under several orders of its threads: against the plain schedule, with single pairs of
// accesses the other way round, with and without old values.
#include "validator/campaign/orders.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "validator/campaign/runner.h"
#include "validator/execution/contests.h"
#include "validator/findings/old_values.h"

namespace assay::campaign {
namespace {

/// Pairs that are run the other way round for one case.
constexpr std::size_t kOrdersTried = 6;
/// Other orders of blocks beside the reversed one, where floats are added as they come.
constexpr std::uint64_t kPermutedForSums = 4;
/// Old reads that a refutation names.
constexpr std::size_t kBlamed = 2;

/// Lines and the missing order, from what the plain run noted: float sums in this output, then sums
/// anywhere, then whoever saw who came first: `guilty`, where that is known.
void Explain(const OrderReport& order, const std::string& output, const Finding* guilty,
             Finding& finding) {
  for (const auto* facts : {&order.sums, &order.contests}) {
    if (facts->empty()) continue;
    const auto here = std::ranges::find_if(
        *facts, [&](const Finding& fact) { return fact.memory && fact.memory->buffer == output; });
    const bool known = guilty != nullptr && facts == &order.contests;
    const Finding& why = known ? *guilty : here != facts->end() ? *here : facts->front();
    finding.accesses = why.accesses;
    finding.missing = why.missing;
    finding.cause = why.message;
    return;
  }
  finding.cause = "what stays there depends on the order in which blocks and warps come";
}

bool WentWrong(const CaseRun& run) {
  return std::ranges::any_of(run.report.findings, MayComeOfOldValues) ||
         !run.nondeterminism.empty() ||
         (run.comparison &&
          (!run.comparison->numeric.empty() || !run.comparison->precision.empty()));
}

/// Of those places of an output, the first whose bits differ.
std::optional<std::int64_t> FirstOf(const oracle::SparseElements& places, const std::string& name,
                                    const Tensor& a, const Tensor& b) {
  const auto of_output = places.find(name);
  if (of_output == places.end()) return std::nullopt;
  const auto differs = [&](std::int64_t at) {
    return std::memcmp(a.Element(at), b.Element(at), SizeOf(a.dtype)) != 0;
  };
  const auto at = std::ranges::find_if(of_output->second, differs);
  return at == of_output->second.end() ? std::nullopt : std::optional(*at);
}

}  // namespace

void CompareSchedules(const TensorMap& plain, const TensorMap& other, const OrderReport& order,
                      const Finding* guilty, std::vector<Finding>& findings,
                      const oracle::SparseElements* places) {
  for (const auto& [name, tensor] : plain) {
    const auto found = other.find(name);
    if (found == other.end()) continue;
    const std::optional<std::int64_t> at = places == nullptr
                                               ? FirstDifference(tensor, found->second)
                                               : FirstOf(*places, name, tensor, found->second);
    if (!at) continue;
    Finding finding;
    finding.kind = FindingKind::kNondeterministic;
    finding.message =
        "output '" + name + "' has other bits under another order of blocks and warps";
    finding.element = ElementPlace{.output = name,
                                   .index = IndexOf(*at, tensor.shape),
                                   .expected = tensor.At(*at),
                                   .got = found->second.At(*at),
                                   .allowance = 0};
    Explain(order, name, guilty, finding);
    findings.push_back(std::move(finding));
  }
}

bool MayLock(const facts::Facts* program) {
  return program == nullptr || !program->fault.empty() || program->atomics_left_out > 0 ||
         std::ranges::any_of(program->atomics, [](const facts::Atomic& atomic) {
           return !atomic.shared && (atomic.operation == "cas" || atomic.operation == "exch");
         });
}

// Of the contests of a plain run, the first one that gives other outputs when a pair of its is run the other
// way round; null where none does.
Result<const Finding*> Runner::GuiltyContest(const OrderReport& order, const TensorMap& plain,
                                             const oracle::SparseElements* places,
                                             const RunAgain& again, CaseRun& run) {
  std::size_t tried = 0;
  for (const std::size_t number : OrdersToBlame(order)) {
    if (tried++ == kOrdersTried) break;
    Schedule schedule;
    schedule.hold = order.orders[number];
    ASSAY_TRY(Rerun turned, again(schedule));
    run.steps += turned.steps;
    if (!turned.report.order.held || turned.report.stop != Stop::kCompleted) continue;
    std::vector<Finding> differences;
    CompareSchedules(plain, turned.outputs, order, nullptr, differences, places);
    if (!differences.empty()) return ContestOf(order, number);
  }
  return nullptr;
}

Status Runner::CompareWithPlain(const TensorMap& outputs, const oracle::SparseElements* places,
                                const RunAgain& again, CaseRun& run, TensorMap& plain) {
  ASSAY_TRY(Rerun reference, again(Schedule{}));
  run.steps += reference.steps;
  if (reference.report.stop == Stop::kCompleted) {
    const OrderReport& order = reference.report.order;
    std::vector<Finding> differences;
    CompareSchedules(reference.outputs, outputs, order, nullptr, differences, places);
    if (!differences.empty() && order.sums.empty() && order.contests.size() > 1) {
      ASSAY_TRY(const Finding* const guilty,
                GuiltyContest(order, reference.outputs, places, again, run));
      differences.clear();
      CompareSchedules(reference.outputs, outputs, order, guilty, differences, places);
    }
    std::ranges::move(differences, std::back_inserter(run.nondeterminism));
  } else if (!reference.report.findings.empty()) {
    // What goes wrong under the plain schedule is this case's finding as well.
    std::ranges::move(reference.report.findings, std::back_inserter(run.report.findings));
  } else {
    run.error = Error{ErrorKind::kLimit,
                      "under the plain schedule the case did not run to its end (" +
                          std::string(Name(reference.report.stop)) + ": " +
                          reference.report.reason + "), so that nothing could be compared with it",
                      "schedules",
                      {}};
  }
  plain = std::move(reference.outputs);
  return {};
}

Status Runner::TurnPairs(const Wants& wants, const TensorMap& outputs,
                         const oracle::SparseElements* places, const RunAgain& again,
                         CaseRun& run) const {
  const OrderReport order = run.report.order;
  run.orders = order.pairs;
  for (const Finding& sum : order.sums) {
    if (sum.memory && outputs.contains(sum.memory->buffer)) run.nondeterminism.push_back(sum);
  }
  if (!wants.orders || !run.report.findings.empty()) return {};
  const auto turn = [&](const Schedule& schedule, const Finding* contest) -> Status {
    ASSAY_TRY(Rerun turned, again(schedule));
    run.steps += turned.steps;
    const bool ended = turned.report.stop == Stop::kCompleted || !turned.report.findings.empty();
    if ((schedule.hold && !turned.report.order.held) || !ended) return {};
    run.orders_tried += schedule.hold ? 1 : 0;
    if (turned.report.findings.empty()) {
      CompareSchedules(outputs, turned.outputs, order, contest, run.nondeterminism, places);
    } else {
      std::ranges::move(turned.report.findings, std::back_inserter(run.nondeterminism));
    }
    // What replays it is the order that differs.
    if (!run.nondeterminism.empty()) run.probe.schedule = schedule;
    return {};
  };
  const std::vector<OrderPair>& pairs = order.orders;
  const std::size_t tried = std::min(kOrdersTried, pairs.size());
  for (std::size_t i = 0; i < tried && run.nondeterminism.empty(); ++i) {
    Schedule schedule = run.probe.schedule;
    schedule.hold = pairs[i * pairs.size() / tried];
    ASSAY_TRY_VOID(turn(schedule, ContestOf(order, i * pairs.size() / tried)));
  }
  // Floats that are added as they come, but not in an output itself, or under a lock, where two that change places are the
  // same sum: whether it shows there, where one order in a few may round to the same result.
  const bool under_a_lock = order.pairs > 0 && MayLock(subject_.compiled->facts.get());
  if ((order.sums.empty() && !under_a_lock) || run.probe.schedule != Schedule{}) return {};
  for (std::uint64_t seed = 0; seed <= kPermutedForSums && run.nondeterminism.empty(); ++seed) {
    ASSAY_TRY_VOID(turn(seed == 0 ? Schedule{.policy = Schedule::Policy::kReversed}
                                  : Schedule{.policy = Schedule::Policy::kPermuted, .seed = seed},
                        nullptr));
  }
  return {};
}

Status Runner::BlameOldValues(const Wants& wants, const TensorMap& plain, CaseRun& run) const {
  if (run.report.stale_reads.empty() || !WentWrong(run)) return {};
  CaseRun without;
  without.probe = run.probe;
  without.probe.schedule.stale = 0;
  Observed observed;
  ASSAY_TRY_VOID(RunOnce(without.probe, wants, without, observed));
  Compare(wants, observed, without);
  run.steps += without.steps;
  if (!plain.empty() && without.report.stop == Stop::kCompleted)
    CompareSchedules(plain, observed.outputs, without.report.order, nullptr,
                     without.nondeterminism);
  if (without.error || WentWrong(without)) return {};
  run.nondeterminism.clear();
  const std::vector<Finding>& old = run.report.stale_reads;
  run.report.findings.insert(
      run.report.findings.end(), old.begin(),
      old.begin() + static_cast<std::ptrdiff_t>(std::min(kBlamed, old.size())));
  return {};
}

}  // namespace assay::campaign
