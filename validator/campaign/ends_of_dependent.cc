// Judging the ends of a huge case whose blocks depend on each other.
//
// Where they draw their work from a counter (queue.h), its first ticket and the last two run, and those whose places the
// last one comes to where a number of 31 or 32 bits wraps. Two blocks draw them, so that two tickets which write the same
// places race. Where the end of an output was not written though tickets go over it in order, all tickets are asked, by
// their skeleton, who writes it. Where that takes too long, the case counts as left out, unless what was written is wrong.
//
// Others run whole where the program's own numbers outgrow their formats (Wants::part_steps): a loop whose bound is
// negative there takes next to nothing. What takes long is left out.
#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "validator/campaign/alone.h"
#include "validator/campaign/blocks.h"
#include "validator/campaign/effort.h"
#include "validator/campaign/parts.h"
#include "validator/campaign/queue.h"
#include "validator/engine/bind.h"
#include "validator/oracle/points.h"

namespace assay::campaign {
namespace {

constexpr std::string_view kMayDepend = "blocks of this plan may depend on each other";
// What the skeleton of one ticket may take.
constexpr std::uint64_t kStepsToSee = 64'000'000;

/// How tickets go over an output: each takes as many elements, one after the other. None where they do not.
struct InOrder {
  std::int64_t elements = 0;  ///< Of the output,
  std::int64_t at_once = 0;   ///< of a ticket,
  std::size_t size = 0;       ///< and the bytes of one.

  bool Fits(std::uint64_t tickets) const {
    const auto all = static_cast<std::int64_t>(tickets);
    return at_once > 0 && (all - 1) * at_once < elements && elements <= all * at_once;
  }
};

/// Tickets at whose places the last one arrives where elements or bytes before it are counted in 31 or 32 bits.
void AddWrapped(const InOrder& order, std::uint64_t tickets, std::set<std::uint64_t>& numbers) {
  const auto each = static_cast<std::uint64_t>(order.at_once);
  const std::uint64_t first = (tickets - 1) * each;
  for (const int bits : {31, 32}) {
    for (const std::uint64_t size : {std::uint64_t{1}, std::uint64_t{order.size}}) {
      const std::uint64_t limit = (std::uint64_t{1} << bits) / size;
      if (first < limit) continue;
      numbers.insert(first % limit / each);
      numbers.insert(std::min((first % limit + each - 1) / each, tickets - 1));
    }
  }
}

}  // namespace

/// What of a queue runs.
struct Runner::ChosenTickets {
  std::set<std::uint64_t> numbers;
  bool in_order = true;  ///< Each takes as much of all outputs, one after the other.
};

// Where the first ticket writes is seen in tensors that hold nothing before.
Result<Runner::ChosenTickets> Runner::ChooseTickets(const Binder& bind, const Queue& queue,
                                                    std::uint64_t& steps) const {
  ASSAY_TRY(const engine::Binding whole, bind.WithoutValues(kGarbage));
  engine::Binding alone;
  ASSAY_TRY(const Report first,
            RunAlone(bind, 0,
                     {.only = {{Blocks(whole.execution.launches.front()) - 1, 1}},
                      .most_steps = kStepsToSee,
                      .only_where = true,
                      .without_values = true,
                      .tickets = queue.Deal({0})},
                     alone));
  steps += first.counters.steps;
  ChosenTickets chosen{.numbers = {0, queue.tickets - 2, queue.tickets - 1}};
  for (const auto& [name, tensor] : alone.calls.front().outputs) {
    const auto buffer = alone.calls.front().buffer_of.find(name)->second;
    const std::size_t size = SizeOf(tensor.dtype);
    const InOrder order = {.elements = tensor.elements,
                           .at_once = RunFromTheFront(WrittenElements(*alone.buffers[buffer], size,
                                                                      kGarbage, first, buffer)),
                           .size = size};
    const bool fits = order.Fits(queue.tickets);
    chosen.in_order = chosen.in_order && fits;
    if (fits) AddWrapped(order, queue.tickets, chosen.numbers);
  }
  return chosen;
}

Status Runner::RunEndsOfDependent(const cases::Probe& probe, const Wants& wants,
                                  const cases::Materialised& filled, const ops::ResolvedPlan& plan,
                                  CaseRun& run) const {
  const ops::Instance& instance = *subject_.instance;
  const std::array calls = {
      engine::Call{.plan = &plan, .axes = &filled.axes, .inputs = &filled.inputs}};
  const Binder bind([&](std::uint8_t poison, bool updates_nothing) {
    return engine::Bind(instance, *subject_.compiled, calls,
                        {.poison = poison, .updates_nothing = updates_nothing});
  });
  ASSAY_TRY(const std::shared_ptr<const Queue> queue, QueueOfItsOwn(bind, filled, kMostHugeSteps));
  const std::uint64_t most = queue != nullptr ? kMostHugeSteps : wants.part_steps;
  if (queue == nullptr && wants.part_steps == 0) {
    run.left_out = kMayDepend;
    return {};
  }
  ASSAY_TRY(engine::Binding bound, bind(probe.poison));
  Execution& execution = bound.execution;
  ChosenTickets chosen;
  if (queue != nullptr) {
    ASSAY_TRY(chosen, ChooseTickets(bind, *queue, run.steps));
    execution.tickets = queue->Deal(chosen.numbers);
    execution.note_missing = true;
    Launch& launch = execution.launches.front();
    const std::uint64_t last = Blocks(launch) - 1;
    if (last > 0) launch.only = {{0, 1}, {last, 1}};
  }
  execution.schedule = probe.schedule;
  execution.checks.coverage = wants.coverage;
  execution.limits.max_steps = most;
  ASSAY_TRY(run.report, engine_.Run(execution, bound.buffers, engine::Trust::kCandidate));
  NameTheKernelFile(run.report);
  run.steps += run.report.counters.steps;
  const auto leave_out = [&](std::string_view reason) {
    run.left_out = ReasonOfALimit(run.report, reason);
    run.report.findings.clear();
    run.report.stop = Stop::kCompleted;
    return Status{};
  };
  if (IsTooLong(run.report)) return leave_out(queue == nullptr ? kMayDepend : kTooLongAtItsEnds);
  if (run.report.stop != Stop::kCompleted || !run.report.findings.empty()) return {};

  const engine::BoundCall& call = bound.calls.front();
  AtItsEnds seen = LookAtEnds(call, probe.poison, filled, run.report);
  const oracle::SparseElements stay = EndsThatStay(probe.case_, filled, call.outputs);
  const auto keep_what_stays = [&](const std::string& output) {
    if (const auto stays = stay.find(output); stays != stay.end())
      seen.wanted[output] = stays->second;
  };
  bool is_unknown = false;
  if (queue == nullptr) {
    NoteOutputs(call, run);
    if (std::ranges::any_of(run.outputs,
                            [](const OutputState& output) { return output.unwritten_bytes != 0; }))
      return {};
    for (const auto& [name, elements] : stay) keep_what_stays(name);
  } else if (!run.report.missing || !run.report.missing->empty()) {
    return leave_out(kMayDepend);
  } else if (seen.unwritten || !stay.empty()) {
    // In another order some other ticket writes it.
    if (!chosen.in_order) return leave_out(kMayDepend);
    ASSAY_TRY(End end, WhoOfAllWritesTheEnd(bind, kStepsToAskAtLast, run.steps));
    is_unknown = !end.known;
    for (OutputState& output : end.unwritten) {
      keep_what_stays(output.name);
      if (instance.op.FindOutput(output.name)->updates.empty())
        run.outputs.push_back(std::move(output));
    }
    if (!run.outputs.empty()) return {};
  }
  const auto truth = oracle_.EvaluateAt(instance, probe.case_, filled, seen.wanted);
  if (!truth) {
    run.left_out = ToString(truth.error());
    return {};
  }
  oracle::ComparePoints(instance, *truth, call.outputs, run.comparison.emplace());
  const bool agrees = run.comparison->numeric.empty() && run.comparison->precision.empty();
  if (is_unknown && agrees) return leave_out(kUnknownEnd);
  return {};
}

}  // namespace assay::campaign
