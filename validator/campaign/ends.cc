// Judging the ends of a huge case: the first block and the last two of each large grid, or the last
// one alone where each loops over millions of elements (engine/window.h), on inputs that are zero but
// for their ends, compared at the elements that these blocks wrote.
//
// Which elements those are is seen from the pages of the outputs that are not holes any more. The
// oracle then runs the blocks of the reference that write them. A wrapped index shows as an access
// out of bounds, as a race with the blocks at the other end, or as a value where another belongs.
// Where launches hand on what they wrote, all is run twice over different garbage: what differs hangs
// on blocks that were not run, and is not judged. Where the last one decides by it, it is judged as a slice: of one of its
// blocks, and those that this one needs (needed.cc); where these take too long, those before it (ends_of_some.cc).
//
// Where the end of an output was not written, perhaps nobody writes it: a grid that is capped without
// a loop. Then the whole grid runs, if it is not too large, and tells. Else the case counts as left out,
// unless what was written is wrong. The same where the end of what is overwritten stays as it was, though the op
// changes it.
//
// Of plans whose blocks may communicate the same blocks run. Where they did nothing by which they may meet others
// (alone.h), they are judged like any: at that shape a product, say, is not split. The others are judged in
// ends_of_dependent.cc. What cannot be run so is left out, with the reason
// (CaseRun::left_out): loops that a block runs over everything, references that take too long.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "validator/campaign/alone.h"
#include "validator/campaign/blocks.h"
#include "validator/campaign/effort.h"
#include "validator/campaign/parts.h"
#include "validator/campaign/runner.h"
#include "validator/campaign/slice.h"
#include "validator/engine/bind.h"
#include "validator/engine/window.h"
#include "validator/oracle/points.h"

namespace assay::campaign {
namespace {

// Another garbage than that of the probe.
constexpr std::uint8_t kOtherPoison = 0x5a;
// Of blocks that the plan says may write the end, where each goes over millions of elements.
constexpr std::size_t kMostWriters = 3;
// What a whole grid may take that seems to leave an output unwritten.
constexpr std::uint64_t kStepsToConfirm = 6'000'000'000;
constexpr std::int64_t kMostToConfirm = 1 << 22;
// What blocks may take that are to show that they meet no others, or that the last launch decides by what these hand on.
constexpr std::uint64_t kStepsApart = kMostHugeSteps / 4;

constexpr std::string_view kDecidesByOthers =
    "a launch decides by what blocks write that were not run";

std::uint64_t MostBlocks(const Execution& execution) {
  std::uint64_t most = 1;
  for (const Launch& launch : execution.launches)
    most = std::max(most, std::uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2]);
  return most;
}

/// What all blocks will take, by those that ran.
double StepsOfAll(const Execution& execution, const Report& report) {
  std::uint64_t ran = 0, all = 0;
  for (const Launch& launch : execution.launches) {
    ran += BlocksThatRun(launch);
    all += Blocks(launch);
  }
  return static_cast<double>(report.counters.steps) * static_cast<double>(all) /
         static_cast<double>(std::max<std::uint64_t>(ran, 1));
}

/// Of blocks that go over an output in turns, so many elements at once: the one that comes to 2^31 or 2^32 in the last
/// turn, behind the end. Kept in 32 bits that is the first element, or one before it.
std::optional<std::uint64_t> BlockThatWraps(std::int64_t elements, std::int64_t at_once,
                                            std::uint64_t blocks) {
  if (at_once == 0) return std::nullopt;
  const auto run = static_cast<std::uint64_t>(at_once);
  const auto all = static_cast<std::uint64_t>(elements);
  const std::uint64_t turn = run * blocks;
  if (all <= turn) return std::nullopt;
  const std::uint64_t reached = (all + turn - 1) / turn * turn;
  for (const std::uint64_t limit : {std::uint64_t{1} << 31, std::uint64_t{1} << 32}) {
    if (limit >= all && limit < reached) return limit / run % blocks;
  }
  return std::nullopt;
}

}  // namespace

Status Runner::RunEnds(const cases::Probe& probe, const Wants& wants, CaseRun& run) const {
  const ops::Instance& instance = *subject_.instance;
  auto inputs = oracle_.Materialise(instance, probe.case_);
  if (!inputs && (inputs.error().kind == ErrorKind::kUnsupported ||
                  inputs.error().kind == ErrorKind::kLimit)) {
    run.left_out = ToString(inputs.error());
    return {};
  }
  ASSAY_TRY(const cases::Materialised filled, std::move(inputs));
  const auto plan = PlanOfPart(filled);
  if (!plan) {
    // The format gate speaks of plans that do not hold.
    run.left_out = ToString(plan.error());
    return {};
  }
  const std::array calls = {
      engine::Call{.plan = &*plan, .axes = &filled.axes, .inputs = &filled.inputs}};
  const std::int64_t elements = cases::TotalElements(instance, probe.case_.axes);
  engine::Cut cut = engine::Cut::kIndependent;
  // Blocks may depend on each other, but those that run shall show that they do not.
  bool apart = false;
  const Binder bind([&](std::uint8_t poison, bool updates_nothing) {
    return engine::Bind(instance, *subject_.compiled, calls,
                        {.poison = poison, .updates_nothing = updates_nothing});
  });
  // By launch: the last that writes, where the last blocks write nothing, and those that come to the first one's places.
  std::map<std::size_t, std::uint64_t> last_writers;
  std::map<std::size_t, std::set<std::uint64_t>> wrapped;
  bool is_asked = false;
  // Nothing where it was left out.
  const auto run_over = [&](std::uint8_t poison,
                            bool all) -> Result<std::optional<engine::Binding>> {
    auto made = bind(poison);
    if (!made) {
      run.left_out = ToString(made.error());
      return std::nullopt;
    }
    const bool last_only = engine::LastBlockOnly(elements, MostBlocks(made->execution));
    if (!apart) cut = engine::CutToEnds(made->execution, subject_.compiled->facts.get(), last_only);
    if (apart && !engine::TakeEnds(made->execution, last_only)) cut = engine::Cut::kRefused;
    const auto refuse = [&] {
      cut = engine::Cut::kRefused;
      run.left_out = "blocks of this plan may depend on each other";
      run.report = {};
      return std::nullopt;
    };
    if (cut == engine::Cut::kRefused) return refuse();
    for (std::size_t i = 0; i < made->execution.launches.size(); ++i) {
      Launch& launch = made->execution.launches[i];
      if (all) launch.only.clear();
      if (all || launch.only.empty()) continue;
      const auto writers = LastOfTurns(*subject_.plan, filled.axes);
      // One block is as good as another where only one can run; what outgrows its format there comes to the first
      // one's places.
      if (last_only && !writers.empty() && *writers.begin() < Blocks(launch)) {
        launch.only = {{*writers.begin(), 1}};
        // The very last one counts further than all others. Which of several axes is the one that is gone over in turns the plan
        // does not say.
        if (wants.part_steps > 0) {
          launch.only = WithBlocks(launch.only, {0, Blocks(launch) - 1}, Blocks(launch));
          if (writers.size() <= kMostWriters)
            launch.only = WithBlocks(launch.only, writers, Blocks(launch));
        }
      }
      if (!last_only) launch.only = WithBlocks(launch.only, writers, Blocks(launch));
      if (const auto last = last_writers.find(i); last != last_writers.end()) {
        launch.only = last_only ? std::vector<BlockRange>{{last->second, 1}}
                                : WithBlocks(launch.only, {last->second}, Blocks(launch));
      }
      if (const auto more = wrapped.find(i); more != wrapped.end())
        launch.only = WithBlocks(launch.only, more->second, Blocks(launch));
    }
    const bool some_left_out = std::ranges::any_of(
        made->execution.launches, [](const Launch& launch) { return !launch.only.empty(); });
    if (apart && !all && !some_left_out) return refuse();
    // What is cleared first is no result yet.
    if (some_left_out &&
        !engine::OutputsOfSeveral(made->execution, subject_.compiled->facts.get()).empty()) {
      run.left_out = kMayBeOverwritten;
      return std::nullopt;
    }
    if (engine::MayFindOld(made->execution, subject_.compiled->facts.get())) {
      run.left_out = "launches hand on what blocks overwrite that were not run";
      return std::nullopt;
    }
    // Those before it may be the dearest of all.
    if (cut == engine::Cut::kHandedOn && !std::exchange(is_asked, true)) {
      engine::Binding alone;
      ASSAY_TRY(const Report last,
                RunAlone(bind, made->execution.launches.size() - 1,
                         {.only = made->execution.launches.back().only, .most_steps = kStepsApart},
                         alone));
      run.steps += last.counters.steps;
      if (UsesUndefined(last)) {
        run.left_out = kDecidesByOthers;
        return std::nullopt;
      }
    }
    made->execution.schedule = probe.schedule;
    made->execution.checks.coverage = wants.coverage;
    made->execution.limits.max_steps = all                    ? kStepsToConfirm
                                       : apart                ? kStepsApart
                                       : wants.part_steps > 0 ? wants.part_steps
                                                              : kMostHugeSteps;
    if (apart && some_left_out) WatchForMeetings(made->execution);
    ASSAY_TRY(run.report, engine_.Run(made->execution, made->buffers, engine::Trust::kCandidate));
    NameTheKernelFile(run.report);
    run.steps += run.report.counters.steps;
    if (apart && some_left_out && !MetNobody(run.report)) return refuse();
    return std::optional(std::move(*made));
  };
  ASSAY_TRY(std::optional<engine::Binding> bound, run_over(probe.poison, /*all=*/false));
  if (!bound && cut == engine::Cut::kRefused) {
    cut = engine::Cut::kIndependent;
    apart = true;
    run.left_out.clear();
    ASSAY_TRY(bound, run_over(probe.poison, /*all=*/false));
  }
  if (apart && (!bound || IsTooLong(run.report))) {
    run.left_out.clear();
    run.report = {};
    ASSAY_TRY_VOID(RunEndsOfDependent(probe, wants, filled, *plan, run));
    return run.left_out.empty() ? Status{}
                                : RunEndsOfSome(probe, filled, bind, kMostHugeSteps, run);
  }
  if (!bound && run.left_out == kDecidesByOthers) {
    run.left_out.clear();
    Wants needed = wants;
    needed.needed_only = needed.truth_or_nothing = true;
    needed.least_blocks = 1;
    needed.part_steps = std::max(wants.part_steps, kMostHugeSteps);
    ASSAY_TRY_VOID(Slice(*this, probe, needed, run).Run());
    // Where one of their blocks had not ended by then, its ends do not either.
    if (run.left_out.empty() || run.steps >= needed.part_steps) return {};
    return RunEndsOfSome(probe, filled, bind, kMostHugeSteps, run);
  }
  if (!bound) return {};
  const auto leave_out = [&](std::string_view reason) {
    run.left_out = ReasonOfALimit(run.report, reason);
    run.report.findings.clear();
    run.report.stop = Stop::kCompleted;
  };
  if (IsTooLong(run.report)) {
    leave_out(kTooLongAtItsEnds);
    return {};
  }
  const bool handed_on = cut == engine::Cut::kHandedOn;
  std::optional<engine::Binding> other;
  if (handed_on) {
    // These are the longest runs of all: no second one where the first tells.
    if (UsesUndefined(run.report)) {
      leave_out(kDecidesByOthers);
      return {};
    }
    const Report first = run.report;
    ASSAY_TRY(other, run_over(probe.poison == kOtherPoison ? 0xff : kOtherPoison, /*all=*/false));
    if (!other) return {};
    const bool fails = first.stop != Stop::kCompleted || !first.findings.empty();
    const bool fails_too = run.report.stop != Stop::kCompleted || !run.report.findings.empty();
    run.report = first;
    if (fails != fails_too) {
      leave_out(kDecidesByOthers);
      return {};
    }
  }
  if (run.report.stop != Stop::kCompleted || !run.report.findings.empty()) return {};
  AtItsEnds seen;
  const auto look_at = [&](const engine::BoundCall& call) {
    seen = LookAtEnds(call, probe.poison, filled, run.report);
  };
  look_at(bound->calls.front());
  // What counts past the end in its last turn may come to the front again.
  for (std::size_t i = 0;
       wants.part_steps > 0 && !handed_on && i < bound->execution.launches.size(); ++i) {
    const Launch& launch = bound->execution.launches[i];
    if (launch.only.empty()) continue;
    if (const auto block = BlockThatWraps(seen.extent, seen.at_once, Blocks(launch)))
      wrapped[i].insert(*block);
  }
  if (!wrapped.empty()) {
    ASSAY_TRY(auto more, run_over(probe.poison, /*all=*/false));
    if (!more) return {};
    if (IsTooLong(run.report)) {
      leave_out(kTooLongAtItsEnds);
      return {};
    }
    if (run.report.stop != Stop::kCompleted || !run.report.findings.empty()) return {};
    bound = std::move(more);
    look_at(bound->calls.front());
  }
  const auto ends_that_stay = [&](const engine::Binding& ran) {
    return EndsThatStay(probe.case_, filled, ran.calls.front().outputs);
  };
  if (!handed_on && elements > kMostToConfirm &&
      (seen.unwritten || !ends_that_stay(*bound).empty())) {
    for (std::size_t i = 0; i < bound->execution.launches.size(); ++i) {
      if (bound->execution.launches[i].only.empty()) continue;
      ASSAY_TRY(const auto block, LastThatWrites(bind, filled, i, run.steps));
      if (block) last_writers[i] = *block;
    }
    if (!last_writers.empty()) {
      ASSAY_TRY(bound, run_over(probe.poison, /*all=*/false));
      if (!bound) return {};
      if (IsTooLong(run.report)) {
        leave_out(kTooLongAtItsEnds);
        return {};
      }
      if (run.report.stop != Stop::kCompleted || !run.report.findings.empty()) return {};
      look_at(bound->calls.front());
    }
  }
  if (seen.unwritten && elements <= kMostToConfirm) {
    Observed observed;
    CaseRun whole;
    whole.probe = probe;
    ASSAY_TRY_VOID(RunOnce(probe, {.max_steps = kStepsToConfirm}, whole, observed));
    run.steps += whole.steps;
    const bool ended = whole.report.stop == Stop::kCompleted;
    if (ended || !whole.report.findings.empty()) {
      run.report = std::move(whole.report);
      run.outputs = std::move(whole.outputs);
      Compare({}, observed, run);
      return {};
    }
    leave_out(kUnknownEnd);
    return {};
  }
  if (other) {
    for (const auto& [name, tensor] : other->calls.front().outputs) {
      for (oracle::SparseElements* const places : {&seen.wanted, &seen.near_the_front}) {
        const auto mine = places->find(name);
        if (mine == places->end()) continue;
        KeepEqual(bound->calls.front().outputs.find(name)->second, tensor, mine->second);
        if (mine->second.empty()) places->erase(mine);
      }
    }
  }
  if (!ends_that_stay(*bound).empty()) {
    Report some = run.report;
    bool known = StepsOfAll(bound->execution, some) <= static_cast<double>(kStepsToConfirm);
    if (known) {
      ASSAY_TRY(std::optional<engine::Binding> whole, run_over(probe.poison, /*all=*/true));
      if (!whole) return {};
      known = !IsTooLong(run.report);
      if (known && (run.report.stop != Stop::kCompleted || !run.report.findings.empty())) return {};
      if (auto stay = known ? ends_that_stay(*whole) : oracle::SparseElements(); !stay.empty()) {
        seen.wanted = std::move(stay);
        bound = std::move(whole);
      } else {
        run.report = std::move(some);
      }
    }
    seen.unwritten = seen.unwritten || !known;
  }
  // Whether it is what the op defines. Truths of all that was written may come to few places of it.
  const auto agrees_at = [&](const oracle::SparseElements& places) -> Result<bool> {
    if (instance.op.Chooses()) {
      ASSAY_TRY_VOID(CompareRows(filled, bound->calls.front().outputs, places, wants, run));
      if (!run.comparison) return Fail(ErrorKind::kLimit, std::exchange(run.left_out, {}));
      return run.comparison->numeric.empty() && run.comparison->precision.empty();
    }
    ASSAY_TRY(const auto truth, oracle_.EvaluateAt(instance, probe.case_, filled, places));
    oracle::ComparePoints(instance, truth, bound->calls.front().outputs, run.comparison.emplace());
    return run.comparison->numeric.empty() && run.comparison->precision.empty();
  };
  // What should have come to the end and wrapped lies near the front, beside what blocks write there first.
  if (seen.unwritten && !instance.op.Chooses()) {
    const Result<bool> agrees = agrees_at(seen.near_the_front);
    if (agrees && !*agrees) return {};
    run.comparison.reset();
  }
  const Result<bool> agrees = agrees_at(seen.wanted);
  if (!agrees)
    run.left_out = ToString(agrees.error());
  else if (seen.unwritten && *agrees)
    leave_out(kUnknownEnd);
  return {};
}

}  // namespace assay::campaign
