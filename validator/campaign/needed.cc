// Slices of several launches: of the last one some blocks run, of those before it the ones that write what
// these read (producers.h).
//
// The blocks of each launch must not depend on each other, and what is handed on must not be filled before the
// first launch: then a byte that no block has written is seen when it is read, and a run that misses none is
// what the whole grids would have done.
//
// Where what blocks write does not move evenly, for it hangs on values or on shares of work, or is not all there in the end,
// the skeleton of their launches is asked who writes what is missing (WritersOf), and says so exactly; also that nobody does.
//
// Where a block of the last launch reads what takes too long to make, and its threads or warps run by themselves
// (facts::Unit), a few of them do in its place, and need the less.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <ranges>
#include <set>
#include <span>
#include <utility>

#include "base/rng.h"
#include "validator/campaign/alone.h"
#include "validator/campaign/blocks.h"
#include "validator/campaign/parts.h"
#include "validator/campaign/producers.h"
#include "validator/campaign/runner.h"
#include "validator/engine/window.h"

namespace assay::campaign {
namespace {

// Launches before the last run whole where they take so little: what is missing then nobody writes.
constexpr std::uint64_t kLittle = 16'000'000;
// How often blocks are added that were missing still.
constexpr int kMostRounds = 5;
// Blocks of the last launch, and how many pieces of each run (0: all of it), of so many threads.
struct Rung {
  std::uint64_t blocks;
  std::uint64_t pieces;
  std::uint64_t length;
};
constexpr std::uint64_t kWarp = 32;
// What is tried instead where it needs too much, one after the other: what a warp does may well be one thing, of which
// a thread alone shows nothing.
constexpr std::array<Rung, 8> kFewer = {{{2, 0, 0},
                                         {2, 8, kWarp},
                                         {2, 2, kWarp},
                                         {2, 1, kWarp},
                                         {1, 1, kWarp},
                                         {2, 2, 1},
                                         {2, 1, 1},
                                         {1, 1, 1}}};

std::vector<BufferRange> WrittenBytes(const engine::Binding& binding, const Report& report) {
  std::vector<BufferRange> written;
  for (std::uint32_t i = 0; i < binding.buffers.size(); ++i) {
    const BufferSpec& spec = binding.execution.buffers[i];
    if (spec.role == BufferRole::kInput || spec.fill != BufferFill::kUninitialised) continue;
    const std::size_t size = SizeOf(spec.dtype);
    AddRanges(i, WrittenElements(*binding.buffers[i], size, kGarbage, report, i), size, written);
  }
  return written;
}

std::uint64_t ThreadsOf(const Launch& launch, const Rung& rung) {
  const std::uint64_t all = Threads(launch);
  return rung.blocks * (rung.pieces == 0 ? all : std::min(rung.pieces * rung.length, all));
}

/// What may be tried of a launch that is to run so many blocks, the most first.
std::vector<Rung> RungsOf(const Launch& launch, facts::Unit unit, std::uint64_t count) {
  std::vector<Rung> rungs = {{count, 0, 0}};
  for (Rung rung : kFewer) {
    rung.blocks = std::min(rung.blocks, count);
    const bool by_itself = rung.pieces == 0 || unit == facts::Unit::kThread ||
                           (unit == facts::Unit::kWarp && rung.length == kWarp);
    if (by_itself && ThreadsOf(launch, rung) < ThreadsOf(launch, rungs.back()))
      rungs.push_back(rung);
  }
  return rungs;
}

/// The threads of a block that run: the piece `last`, the first and drawn ones before it. None, for all.
std::vector<BlockRange> PiecesOf(const Rung& rung, std::uint64_t last, std::uint64_t seed) {
  if (last < rung.pieces) return {};
  Rng rng(DeriveSeed(seed, "pieces"));
  std::set<std::uint64_t> chosen = {last};
  if (rung.pieces > 1) chosen.insert(0);
  while (chosen.size() < rung.pieces) chosen.insert(rng.Below(last + 1));
  std::vector<BlockRange> ranges;
  for (const std::uint64_t number : chosen) ranges.push_back({number * rung.length, rung.length});
  return ranges;
}

bool ReadsUndefined(const Report& report) {
  return std::ranges::any_of(report.findings, [](const Finding& finding) {
    return finding.kind == FindingKind::kUninitialisedUse;
  });
}

bool MayFollow(const Execution& execution, const facts::Facts* facts) {
  const std::size_t last = execution.launches.size() - 1;
  if (last == 0 || engine::MayCut(execution, facts, last) != engine::Cut::kIndependent)
    return false;
  for (std::size_t i = 0; i < last; ++i) {
    if (engine::MayCut(execution, facts, i) == engine::Cut::kRefused) return false;
  }
  return true;
}

}  // namespace

std::string Runner::KeyOfShape(const cases::Materialised& filled) const {
  const ops::Instance& instance = *subject_.instance;
  std::string key;
  for (const auto& [name, extent] : filled.axes) key += fmt::format("{}={} ", name, extent);
  for (const ops::TensorSpec& spec : instance.op.inputs) {
    if (spec.is_scalar && !IsFloat(instance.TypeOf(spec)))
      key += fmt::format("{}={} ", spec.name, filled.inputs.find(spec.name)->second.At(0));
  }
  return key;
}

// By launch, but for the last. Not all followed: no producers.
struct Runner::HandedOn {
  std::vector<Producers> producers;
  std::vector<std::uint64_t> block_steps;  // The most that one of the sample blocks took.
  std::uint64_t whole_steps = 0;           // All blocks, if they take as much on average.
  std::uint64_t skeleton_steps = 0;        // The same of their skeleton.
  std::uint64_t unending = 0;  // What a block took that did not end; 0: all that were tried did.
};

// What the blocks of one launch hand on: by those in one corner of the grid or, where these do not write alike, in the
// other.
Status Runner::LearnOfLaunch(const Binder& bind, std::size_t launch, std::uint64_t most_steps,
                             HandedOn& learned) const {
  ASSAY_TRY(const engine::Binding whole, bind.WithoutValues(kGarbage));
  const std::array<std::uint32_t, 3> grid = whole.execution.launches[launch].grid;
  std::uint64_t most = 0, all = 0, ran = 0, learned_from = 0, most_to_see = 0;
  std::optional<Producers> producers;
  bool may_begin_anew = false;
  // The first one tells what blocks take, the others where they write.
  const auto writes = [&](std::uint64_t block) -> Result<std::optional<std::vector<BufferRange>>> {
    engine::Binding alone;
    const bool only_where = ran > 0;
    ASSAY_TRY(const Report report,
              RunAlone(bind, launch,
                       {.only = {{block, 1}}, .most_steps = most_steps, .only_where = only_where},
                       alone));
    learned_from += report.counters.steps;
    if (only_where) {
      most_to_see = std::max(most_to_see, report.counters.steps);
    } else {
      most = std::max(most, report.counters.steps);
      all += report.counters.steps;
      ++ran;
    }
    if (!only_where && report.stop == Stop::kStepLimit) learned.unending += report.counters.steps;
    // What takes from a launch before it as well is not followed.
    if (report.stop != Stop::kCompleted || !report.findings.empty() || !report.missing ||
        !report.missing->empty())
      return std::nullopt;
    return WrittenBytes(alone, report);
  };
  for (const Corner corner : {Corner::kFirst, Corner::kLast}) {
    const std::vector<std::uint64_t> blocks = SampleBlocks(grid, corner);
    if (corner == Corner::kLast && blocks == SampleBlocks(grid)) break;
    std::vector<std::vector<BufferRange>> samples;
    for (const std::uint64_t block : blocks) {
      ASSAY_TRY(auto written, writes(block));
      if (!written) break;
      samples.push_back(*std::move(written));
    }
    if (learned.unending > 0) {
      learned.whole_steps += Blocks(whole.execution.launches[launch]) * most;
      learned.block_steps.push_back(most);
      return {};
    }
    if (samples.size() < blocks.size()) continue;
    auto evenly = Producers::Of(grid, samples, Producers::Places::kOfOneBlock, corner);
    if (!evenly || (producers && !evenly->IsOfAll())) continue;
    producers = std::move(evenly);
    may_begin_anew = corner == Corner::kFirst && !samples.front().empty();
    if (!samples.front().empty() && producers->IsOfAll()) break;
  }
  if (producers && may_begin_anew) {
    ASSAY_TRY_VOID(producers->Refine([&](std::uint64_t block) {
      return learned_from > kMostToLearn
                 ? Result<std::optional<std::vector<BufferRange>>>(std::nullopt)
                 : writes(block);
    }));
  }
  learned.skeleton_steps += Blocks(whole.execution.launches[launch]) * most_to_see;
  learned.whole_steps += Blocks(whole.execution.launches[launch]) * (all / ran);
  learned.block_steps.push_back(most);
  if (producers) learned.producers.push_back(*std::move(producers));
  return {};
}

Result<std::shared_ptr<const Runner::HandedOn>> Runner::LearnHandedOn(
    const Binder& bind, const cases::Materialised& filled, std::uint64_t most_steps) const {
  const std::string key = KeyOfShape(filled);
  {
    const std::lock_guard lock(mutex_);
    // What did not end within less may yet.
    const auto known = handed_on_.find(key);
    if (known != handed_on_.end() &&
        (known->second->unending == 0 || known->second->unending >= most_steps))
      return known->second;
  }
  auto learned = std::make_shared<HandedOn>();
  ASSAY_TRY(const engine::Binding whole, bind.WithoutValues(kGarbage));
  const std::size_t count = whole.execution.launches.size() - 1;
  for (std::size_t i = 0; i < count && learned->unending == 0; ++i)
    ASSAY_TRY_VOID(LearnOfLaunch(bind, i, most_steps, *learned));
  if (learned->producers.size() < count) learned->producers.clear();
  const std::lock_guard lock(mutex_);
  std::shared_ptr<const HandedOn>& kept = handed_on_[key];
  // Nor is what another thread has learned by now forgotten for it.
  if (kept == nullptr || (kept->unending != 0 && kept->unending < most_steps))
    kept = std::move(learned);
  return kept;
}

std::uint64_t Runner::WholeStepsOfThoseBefore(const cases::Materialised& filled) const {
  const std::lock_guard lock(mutex_);
  const auto known = handed_on_.find(KeyOfShape(filled));
  return known == handed_on_.end() ? 0 : known->second->whole_steps;
}

Result<std::optional<Runner::Needed>> Runner::RunNeeded(
    const Binder& bind, const cases::Probe& probe, const cases::Materialised& filled,
    std::uint64_t count, std::uint64_t room, std::uint64_t most_steps, std::uint64_t& steps) const {
  ASSAY_TRY(engine::Binding binding, bind(probe.poison));
  if (binding.execution.launches.size() == 1)
    return RunTogether(bind, probe, filled, count, room, most_steps, steps);
  if (!MayFollow(binding.execution, subject_.compiled->facts.get())) return std::nullopt;
  const std::size_t last = binding.execution.launches.size() - 1;
  ASSAY_TRY(const std::shared_ptr<const HandedOn> handed_on,
            LearnHandedOn(bind, filled, most_steps));
  // No slice has room for such a block. Each case counts it, whoever found it out first, and within what limit.
  if (std::ranges::any_of(handed_on->block_steps,
                          [&](std::uint64_t block) { return block >= most_steps; })) {
    steps += most_steps;
    return std::nullopt;
  }
  if (handed_on->producers.empty() && handed_on->whole_steps > kLittle &&
      (SkeletonFor(binding.execution) == nullptr || handed_on->skeleton_steps > kStepsToAsk))
    return std::nullopt;

  const Launch& launch = binding.execution.launches[last];
  const facts::Unit unit = facts::UnitOf(subject_.compiled->facts.get(), launch.entry);
  const std::vector<Rung> rungs = RungsOf(launch, unit, count);
  const auto run = [&](const Rung& rung, std::uint64_t most,
                       std::uint64_t& cost) -> Result<std::optional<Needed>> {
    std::vector<BlockRange> threads;
    if (rung.pieces > 0) {
      ASSAY_TRY(const std::uint64_t piece,
                LastPieceThatWrites(bind, filled, last, rung.length, steps));
      threads = PiecesOf(rung, piece, probe.case_.seed);
    }
    const Alone what = {.only = ChooseBlocks(Blocks(launch), rung.blocks, probe.case_.seed),
                        .threads = std::move(threads),
                        .most_steps = std::min(most, most_steps),
                        .count = rung.blocks};
    return RunWithNeeded(bind, probe.poison, *handed_on, what, steps, cost);
  };
  // Where nothing has room, what takes least: of those that take as much, for what they need is the same, the most.
  constexpr double kLess = 0.9;
  const Rung* cheapest = nullptr;
  double least = HUGE_VAL;
  const Rung* before = nullptr;
  double dear = 0;
  std::uint64_t same_of = 0;  // Of so many blocks fewer threads needed as much.
  const std::uint64_t steps_before = steps;
  for (const Rung& rung : rungs) {
    // Trying may not take more than what is tried.
    if (steps - steps_before > most_steps) return std::nullopt;
    const double part = before == nullptr ? 0
                                          : static_cast<double>(ThreadsOf(launch, rung)) /
                                                static_cast<double>(ThreadsOf(launch, *before));
    if (&rung != &rungs.back() && dear * part > static_cast<double>(room)) continue;
    // Where fewer threads of a block needed as much as more of them, only the fewest may need less.
    const bool is_fewest = std::none_of(&rung + 1, rungs.data() + rungs.size(),
                                        [&](const Rung& r) { return r.blocks == rung.blocks; });
    if (rung.blocks == same_of && !is_fewest) continue;
    std::uint64_t cost = 0;
    ASSAY_TRY(auto needed, run(rung, room, cost));
    if (needed) return needed;
    // How much it would be is not known; less may tell.
    if (cost == 0) continue;
    const bool as_much = before != nullptr && before->blocks == rung.blocks &&
                         static_cast<double>(cost) >= kLess * dear;
    if (as_much) same_of = rung.blocks;
    dear = static_cast<double>(cost);
    before = &rung;
    if (dear >= kLess * least) continue;
    least = dear;
    cheapest = &rung;
  }
  std::uint64_t cost = 0;
  return run(cheapest != nullptr ? *cheapest : rungs.back(), most_steps, cost);
}

Result<std::optional<Runner::Needed>> Runner::RunWithNeeded(const Binder& bind, std::uint8_t poison,
                                                            const HandedOn& handed_on,
                                                            const Alone& what, std::uint64_t& steps,
                                                            std::uint64_t& cost) const {
  const std::size_t last = handed_on.block_steps.size();
  const auto run_with =
      [&](const std::vector<std::set<std::uint64_t>>* blocks) -> Result<std::optional<Needed>> {
    ASSAY_TRY(engine::Binding binding, bind(poison));
    for (std::size_t i = 0; blocks != nullptr && i < last; ++i) {
      Launch& launch = binding.execution.launches[i];
      launch.only.clear();
      for (const std::uint64_t block : (*blocks)[i]) launch.only.push_back({block, 1});
    }
    binding.execution.launches[last].only = what.only;
    binding.execution.launches[last].threads = what.threads;
    binding.execution.note_missing = true;
    binding.execution.limits.max_steps = what.most_steps;
    ASSAY_TRY(Report report,
              engine_.Run(binding.execution, binding.buffers, engine::Trust::kCandidate));
    steps += report.counters.steps;
    if (report.stop == Stop::kStepLimit || report.stop == Stop::kResourceLimit) return std::nullopt;
    return Needed{std::move(binding), std::move(report), what.count};
  };
  if (handed_on.whole_steps <= kLittle) return run_with(nullptr);
  engine::Binding alone;
  ASSAY_TRY(const Report reads, RunAlone(bind, last, what, alone));
  steps += reads.counters.steps;
  if (reads.stop == Stop::kStepLimit) return std::nullopt;
  std::optional<std::vector<BufferRange>> missing = reads.missing;
  std::vector<std::set<std::uint64_t>> blocks(last);
  std::optional<Needed> run;  // The one before,
  bool undefined = false;     // and whether it used what was missing.
  const WritesAlone writes =
      [&](std::size_t launch,
          std::uint64_t block) -> Result<std::optional<std::vector<BufferRange>>> {
    engine::Binding binding;
    ASSAY_TRY(const Report report,
              RunAlone(bind, launch,
                       {.only = {{block, 1}}, .most_steps = what.most_steps, .only_where = true},
                       binding));
    steps += report.counters.steps;
    if (report.stop != Stop::kCompleted || !report.findings.empty() || !report.missing ||
        !report.missing->empty())
      return std::nullopt;
    return WrittenBytes(binding, report);
  };
  if (missing && missing->empty()) {
    ASSAY_TRY(const engine::Binding whole, bind(poison));
    // Nothing is handed on: each launch has results of its own, whole tiles and what is left over, say.
    const std::uint64_t seed = what.only.empty() ? 0 : what.only.front().first;
    for (std::size_t i = 0; i < last; ++i) {
      const std::uint64_t all = Blocks(whole.execution.launches[i]);
      const std::vector<BlockRange> chosen = what.count >= all
                                                 ? std::vector<BlockRange>{{0, all}}
                                                 : ChooseBlocks(all, what.count, seed + i);
      for (const BlockRange& range : chosen) {
        for (std::uint64_t block = range.first; block < range.first + range.count; ++block)
          blocks[i].insert(block);
      }
      cost += blocks[i].size() * handed_on.block_steps[i];
    }
    cost += reads.counters.steps;
    if (cost > what.most_steps) return std::nullopt;
    return run_with(&blocks);
  }
  // Those that write what is missing: by what was learned or, where that does not say, by their skeleton.
  const auto add_by_guess = [&] {
    return !handed_on.producers.empty() &&
           std::ranges::all_of(std::views::iota(std::size_t{0}, last), [&](std::size_t i) {
             return handed_on.producers[i].AddWritersOf(*missing, blocks[i]);
           });
  };
  for (int round = 0; round < kMostRounds && missing && !missing->empty(); ++round) {
    const std::vector<std::set<std::uint64_t>> before = blocks;
    const bool guessed = add_by_guess();
    if (!guessed) blocks = before;
    if (blocks == before) {
      std::optional<std::vector<WrittenRange>> writers;
      const std::uint64_t most = guessed && undefined ? kStepsToAskAtLast : kStepsToAsk;
      if (handed_on.skeleton_steps <= most) {
        ASSAY_TRY(writers, WritersOf(bind, *missing, most, steps));
      }
      if (writers) {
        for (const WrittenRange& range : *writers) blocks[range.launch].insert(range.block);
        // Nobody writes what is missing: the run was what all blocks would have done.
        if (writers->empty() && run) return run;
        if (blocks == before && run) return std::nullopt;
      } else {
        // All that should have written it ran.
        if (!guessed || !undefined) return std::nullopt;
        ASSAY_TRY(const bool nobody,
                  NobodyWrites(*missing, handed_on.producers, run->binding.execution, writes));
        if (!nobody) return std::nullopt;
        return run;
      }
    }
    std::uint64_t estimate = 0;
    for (std::size_t i = 0; i < last; ++i) estimate += blocks[i].size() * handed_on.block_steps[i];
    cost = reads.counters.steps + estimate;
    if (cost > what.most_steps) return std::nullopt;
    // Of a launch of which nothing is needed one block runs: no blocks at all would mean all of them.
    for (std::set<std::uint64_t>& of_launch : blocks) {
      if (of_launch.empty()) of_launch.insert(0);
    }
    ASSAY_TRY(run, run_with(&blocks));
    if (!run) return std::nullopt;
    missing = run->report.missing;
    if (!missing || missing->empty()) return missing ? std::move(run) : std::nullopt;
    undefined = ReadsUndefined(run->report);
  }
  return std::nullopt;
}

}  // namespace assay::campaign
