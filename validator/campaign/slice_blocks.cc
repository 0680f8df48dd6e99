// Which blocks of a slice run: as many as its budget has room for, those that write the ends of outputs, and of several
// launches those that are needed.
#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include "validator/campaign/alone.h"
#include "validator/campaign/blocks.h"
#include "validator/campaign/slice.h"
#include "validator/engine/window.h"

namespace assay::campaign {
namespace {

// As much as a slice may take of what was estimated,
constexpr std::uint64_t kFarTooLow = 2;
// what a whole grid may that seems to leave the end of an output unwritten, and where its skeleton would tell,
constexpr std::uint64_t kStepsToConfirm = 6'000'000'000;
constexpr std::uint64_t kStepsBesideSkeleton = 300'000'000;
// all of those that meet, where some of them do not write it,
constexpr std::uint64_t kStepsOfThoseThatMeet = 4'000'000'000;
// and the last launch by itself, where only what is needed of those before it runs.
constexpr std::uint64_t kStepsOfTheLast = 4'000'000'000;

constexpr std::string_view kFarLonger = "some blocks take far longer than the last one";

// Blocks that take so many times what a slice is to take are dear; and all of such a slice take no more than so many times.
constexpr std::uint64_t kDear = 3, kDearest = 5;

/// How many blocks run, where each takes that much, beside so many that write the ends of outputs.
std::uint64_t BlocksFor(std::uint64_t a_block, std::uint64_t writers, const Wants& wants) {
  a_block = std::max<std::uint64_t>(a_block, 1);
  // What the dearest slices spend on a block between the ends, and then on the first one, would do for a whole wave.
  const std::uint64_t affordable = kDearest * wants.slice_steps / a_block;
  const std::uint64_t least =
      std::clamp<std::uint64_t>(affordable - std::min(writers, affordable), wants.sure_blocks,
                                std::max(wants.least_blocks, wants.sure_blocks));
  return std::max(wants.slice_steps / a_block, least);
}

}  // namespace

Status Runner::Slice::RunBlocks(std::uint64_t count, std::uint64_t limit) {
  // What the run before has overwritten is there anew.
  if (std::exchange(ran_, true) && copied_ > 0) {
    ASSAY_TRY(bound_, BindOver(probe_.poison));
  }
  Execution& execution = bound_.execution;
  // Where those that come to the ends are dear, the last one, which does not, is none the better for being last.
  only_writers_ = count == 1 && probe_.slice_blocks == 0 && !writers_.empty() &&
                  !writers_left_it_ && wants_.block_steps > kDear * wants_.slice_steps;
  for (const std::size_t i : cut_) {
    Launch& launch = execution.launches[i];
    if (only_writers_ && *writers_.begin() < Blocks(launch)) {
      launch.only = WithBlocks({{*writers_.begin(), 1}}, writers_, Blocks(launch));
      continue;
    }
    launch.only = WithBlocks(ChooseBlocks(Blocks(launch), count, probe_.case_.seed + i), writers_,
                             Blocks(launch));
  }
  execution.limits.max_steps = limit;
  run_.probe.slice_blocks = cut_.empty() ? 0 : count;
  ASSAY_TRY(run_.report, runner_.engine_.Run(execution, bound_.buffers, engine::Trust::kCandidate));
  NoteReport();
  run_.steps += run_.report.counters.steps;
  // What they did then says nothing, and no others are tried. Nor where a launch between two others may have overwritten what the
  // last one found.
  if (apart_ && (!MetNobody(run_.report) ||
                 engine::MayFindOld(execution, runner_.subject_.compiled->facts.get()))) {
    met_ = true;
    run_.report.stop = Stop::kStepLimit;
    run_.report.findings.clear();
  }
  return {};
}

bool Runner::Slice::IsEstimatedAbove(std::uint64_t steps) const {
  if (wants_.beside_steps > 0 && !cut_.empty())
    return wants_.beside_steps + wants_.block_steps > steps;
  std::uint64_t blocks = 1;
  for (const Launch& launch : bound_.execution.launches) blocks = std::max(blocks, Blocks(launch));
  return wants_.block_steps > steps / blocks;
}

Status Runner::Slice::RunNeeded(std::uint64_t count) {
  const Binder bind = Binding();
  std::uint64_t room = Wants::kLittleMore * wants_.slice_steps;
  // Where blocks run as wholes, what is known to have no room is not tried first.
  const Launch& last = bound_.execution.launches.back();
  if (wants_.of_blocks && probe_.slice_blocks == 0 && bound_.execution.launches.size() > 1 &&
      facts::UnitOf(runner_.subject_.compiled->facts.get(), last.entry) == facts::Unit::kBlock) {
    const std::uint64_t each = std::max<std::uint64_t>(wants_.block_steps, 1);
    count = std::clamp<std::uint64_t>(room / each, 1, count);
    if (each > room) room = most_steps_;
  }
  ASSAY_TRY(auto needed,
            runner_.RunNeeded(bind, probe_, filled_, count, room, most_steps_, run_.steps));
  if (!needed) return {};
  bound_ = std::move(needed->binding);
  run_.report = std::move(needed->report);
  NoteReport();
  tickets_ = needed->tickets;
  run_.probe.slice_blocks = needed->count;
  run_.probe.needed_only = only_needed_ = true;
  return {};
}

std::uint64_t Runner::Slice::CountFor(std::uint64_t a_block) const {
  if (probe_.slice_blocks > 0) return std::min(probe_.slice_blocks, all_);
  const std::uint64_t count = without_truth_ ? 1 : BlocksFor(a_block, writers_.size(), wants_);
  // Nothing is left to guess where all can run for little more.
  return all_ <= Wants::kLittleMore * count &&
                 all_ * a_block <= Wants::kLittleMore * wants_.slice_steps
             ? all_
             : count;
}

Runner::Slice::BlockCost Runner::Slice::CostOfBlocks() const {
  const Execution& execution = bound_.execution;
  // What launches take that run whole hangs on no number of blocks.
  BlockCost cost = {.a_block = 0, .all = run_.report.counters.steps};
  for (const std::size_t i : cut_) {
    const std::uint64_t ran = BlocksThatRun(execution.launches[i]);
    const std::uint64_t steps = i < run_.report.launch_steps.size() ? run_.report.launch_steps[i]
                                                                    : run_.report.counters.steps;
    const std::uint64_t a_block = std::max<std::uint64_t>(steps / ran, 1);
    cost.a_block += a_block;
    cost.all += (Blocks(execution.launches[i]) - ran) * a_block;
  }
  return cost;
}

Result<std::uint64_t> Runner::Slice::RunAtOnce() {
  const bool known = probe_.slice_blocks > 0;
  if (cut_.empty() || (!known && wants_.block_steps == 0)) return 0;
  // Both ends of what is dear, as many as are ever chosen, or what blocks are known to take. If that was wrong, or the end was not written, there
  // is more to find out.
  const std::uint64_t count = CountFor(wants_.block_steps);
  if (count < 2 || !(known || wants_.of_blocks || IsDear() || count >= std::min(kMostChosen, all_)))
    return 0;
  // An estimate that was far too low ends soon.
  ASSAY_TRY_VOID(RunBlocks(
      count,
      known ? most_steps_
            : std::min(most_steps_, kFarTooLow * (count + writers_.size()) * wants_.block_steps)));
  return IsTooLong() || (IsClean() && SomeEndIsUnwritten()) ? 0 : count;
}

Result<bool> Runner::Slice::AddLastThatWrites() {
  const std::size_t known = writers_.size();
  const Binder bind = Binding();
  for (const std::size_t i : cut_) {
    ASSAY_TRY(const auto block, runner_.LastThatWrites(bind, filled_, i, run_.steps));
    if (block) writers_.insert(*block);
  }
  return writers_.size() > known;
}

Result<bool> Runner::Slice::RunTheRest(std::uint64_t ran_at_once) {
  const Execution& execution = bound_.execution;
  if (only_writers_ && SomeEndIsUnwritten()) {
    writers_left_it_ = true;
    ASSAY_TRY_VOID(RunBlocks(1, most_steps_));
    if (!IsClean()) {
      if (IsTooLong()) LeaveOut(kBlockTooLong);
      return !IsTooLong();
    }
  }
  auto [a_block, all_blocks] = CostOfBlocks();
  // The last block may have next to nothing to do.
  a_block = std::max(a_block, wants_.block_steps / 2);
  all_blocks = std::max(all_blocks, wants_.block_steps / 2 * all_);
  const std::size_t known_writers = writers_.size();
  for (const auto& [name, tensor] : Outputs()) {
    if (!EndIsUnwritten(name, tensor)) continue;
    const std::vector<std::int64_t> written = Written(name, tensor);
    for (const std::size_t i : cut_) {
      const Launch& launch = execution.launches[i];
      const std::uint64_t first = launch.only.empty() ? 0 : launch.only.front().first;
      if (const auto block = WriterOfTheEnd(written, tensor.elements, first, Blocks(launch)))
        writers_.insert(*block);
    }
  }
  const std::uint64_t count = std::max(CountFor(a_block), ran_at_once);
  const auto most_of = [&, each = a_block](std::uint64_t blocks) {
    const std::uint64_t chosen = blocks >= all_ ? all_ : std::min(blocks, kMostChosen);
    return std::min(2 * most_steps_,
                    kFarTooLow * kFarTooLow * 2 *
                        std::max((chosen + writers_.size()) * each, wants_.slice_steps));
  };
  const bool guessed = writers_.size() > known_writers;
  if (!guessed && count < all_ && SomeEndIsUnwritten()) ASSAY_TRY_VOID(AddLastThatWrites());
  const bool the_same = std::min(count, kMostChosen) == std::min(ran_at_once, kMostChosen) &&
                        (count >= all_) == (ran_at_once >= all_);
  if (!the_same || writers_.size() > known_writers) {
    ASSAY_TRY_VOID(RunBlocks(count, most_of(count)));
    if (IsTooLong()) {
      LeaveOut(kFarLonger);
      return false;
    }
  }
  whole_ = count >= all_;
  if (whole_ || !IsClean() || !SomeEndIsUnwritten()) return true;
  ASSAY_TRY(const bool found, guessed ? AddLastThatWrites() : Result<bool>(false));
  if (found) {
    ASSAY_TRY_VOID(RunBlocks(count, most_of(count)));
    if (IsTooLong()) {
      LeaveOut(kFarLonger);
      return false;
    }
    if (!IsClean() || !SomeEndIsUnwritten()) return true;
  }
  const bool has_skeleton = runner_.SkeletonFor(execution) != nullptr;
  const std::uint64_t most = has_skeleton ? kStepsBesideSkeleton : kStepsToConfirm;
  if (has_skeleton || all_blocks > most) {
    ASSAY_TRY(const bool somebody, AskWhoWrites());
    if (!somebody || all_blocks > most) return somebody;
  }
  const bool known = has_skeleton && !std::exchange(end_is_unknown_, false);
  ASSAY_TRY_VOID(RunBlocks(all_, 2 * most));
  whole_ = true;
  if (!IsTooLong()) return true;
  LeaveOut(known ? kFarLonger : kUnknownEnd);
  return false;
}

Result<bool> Runner::Slice::FindTheEnd() {
  end_is_unknown_ = IsClean() && SomeEndIsUnwritten();
  if (!end_is_unknown_) return true;
  if (bound_.execution.launches.size() == 1) {
    // Others may write it, of which the last block was not known to meet them.
    const Launch& launch = bound_.execution.launches.front();
    if (tickets_ > 0) return AskWhoWrites();
    if (run_.report.counters.steps / BlocksThatRun(launch) > kStepsOfThoseThatMeet / Blocks(launch))
      return AskWhoWrites();
    only_needed_ = run_.probe.needed_only = false;
    const std::uint64_t all = Blocks(launch);
    ASSAY_TRY(bound_, BindOver(probe_.poison));
    ASSAY_TRY_VOID(RunBlocks(all, 2 * kStepsOfThoseThatMeet));
    whole_ = !IsTooLong();
    end_is_unknown_ = false;
    if (whole_) return true;
    LeaveOut(UnknownEnd());
    return false;
  }
  return AskWhoWrites();
}

Result<bool> Runner::Slice::AskWhoWrites() {
  end_is_unknown_ = true;
  const Binder bind = Binding();
  const auto take = [this](End end) {
    end_is_unknown_ = !end.known;
    if (end.unwritten.empty()) return true;
    run_.outputs = std::move(end.unwritten);
    NoteParts();
    return false;
  };
  // Any block alone would draw all that there is, or is not the last of those that meet.
  if (tickets_ > 0 || (only_needed_ && bound_.execution.launches.size() == 1)) {
    ASSAY_TRY(End end, runner_.WhoOfAllWritesTheEnd(
                           bind, tickets_ > 0 ? kStepsToAskAtLast : kStepsToAsk, run_.steps));
    // What an op overwrites may stay as it was.
    oracle::SparseElements stays;
    for (const OutputState& output : end.unwritten) {
      if (Before(output.name) != nullptr) stays[output.name] = {output.first_unwritten};
    }
    std::erase_if(end.unwritten, [&](const OutputState& o) { return stays.contains(o.name); });
    const bool written = take(std::move(end));
    if (!written || stays.empty()) return written;
    ASSAY_TRY_VOID(runner_.CompareWhatStays(filled_, std::move(stays), run_));
    end_is_unknown_ = end_is_unknown_ || !run_.left_out.empty();
    run_.left_out.clear();
    if (run_.comparison && !run_.comparison->numeric.empty()) {
      NoteParts();
      return false;
    }
    return true;
  }
  const Launch& last = bound_.execution.launches.back();
  const auto ran = static_cast<double>(BlocksThatRun(last) * ThreadsThatRun(last));
  const auto all = static_cast<double>(Blocks(last) * Threads(last));
  if (runner_.SkeletonFor(bound_.execution) == nullptr &&
      (run_.report.launch_steps.empty() ||
       static_cast<double>(run_.report.launch_steps.back()) * all / ran >
           static_cast<double>(kStepsOfTheLast)))
    return true;
  std::set<std::uint64_t> blocks = LastOfTurns(*runner_.subject_.plan, filled_.axes);
  // The corners of the grid: work may be dealt out from both ends of an axis.
  const auto& [across, down, deep] = last.grid;
  for (const std::uint64_t x : {0u, across - 1}) {
    for (const std::uint64_t y : {0u, down - 1}) {
      for (const std::uint64_t z : {0u, deep - 1}) blocks.insert(x + across * (y + down * z));
    }
  }
  ASSAY_TRY(End end,
            runner_.WhoWritesTheEnd(bind, WithBlocks({{Blocks(last) - 1, 1}}, blocks, Blocks(last)),
                                    kStepsOfTheLast, run_.steps));
  if (end.left_over_zeros) {
    return Fail(ErrorKind::kLimit,
                "the last launch leaves the end of an output unwritten where all that it reads of "
                "those before is "
                "zero, and they take too long to see what it does with what they write");
  }
  return take(std::move(end));
}

}  // namespace assay::campaign
