// Slices of several launches: of the last one some blocks run, of those before it the ones that write what
// these read (producers.h).
//
// The blocks of each launch must not depend on each other, and what is handed on must not be a tensor that the op
// overwrites: then a byte that no block has written is seen when it is read, and a run that misses none is
// what the whole grids would have done. Workspace that starts as zeros counts as written by nobody; what is read of it that
// indeed nobody writes is zero, once more.
//
// A launch may write again what an earlier one wrote, in place. So whoever does that to what blocks that run have written
// runs as well, unless the last launch alone reads it, which is asked for all that it reads.
//
// Where what blocks write does not move evenly, for it hangs on values or on shares of work, or is not all there in the end,
// the skeleton of their launches is asked who writes what is missing (WritersOf), and says so exactly; also that nobody does.
//
// Where a block of the last launch reads what takes too long to make, and its threads or warps run by themselves
// (facts::Unit), a few of them do in its place, and need the less.
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <ranges>
#include <set>
#include <span>
#include <utility>

#include "base/rng.h"
#include "validator/campaign/alone.h"
#include "validator/campaign/blocks.h"
#include "validator/campaign/handed_on.h"
#include "validator/campaign/parts.h"
#include "validator/engine/window.h"

namespace assay::campaign {
namespace {

// Launches before the last run whole where they take so little: what is missing then nobody writes.
constexpr std::uint64_t kLittle = 16'000'000;
// What their skeleton may take that is asked who writes what is missing: of shares past 2^32 elements a few thousand million.
constexpr std::uint64_t kStepsToAskOfAll = 2 * kStepsToAsk;
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

/// Of each launch but the last.
using ChosenBlocks = std::vector<std::set<std::uint64_t>>;

/// Does workspace hold the zeros that it starts as, or is what is read of them missing?
enum class Fills : std::uint8_t { kKept, kForgotten };

/// Does a launch between two others take a buffer?
bool IsTakenBetween(const Execution& execution, std::uint32_t buffer, std::size_t after,
                    std::size_t before) {
  for (std::size_t i = after + 1; i < before; ++i) {
    if (std::ranges::any_of(execution.launches[i].args, [&](const Argument& argument) {
          return argument.kind == Argument::Kind::kBuffer && argument.buffer == buffer;
        }))
      return true;
  }
  return false;
}

/// Adds the blocks that write again what blocks chosen of an earlier launch write, where one of a third launch may read it.
/// False: they are too many.
bool AddOverwriters(const Execution& execution, std::span<const Producers> producers,
                    ChosenBlocks& blocks) {
  for (std::size_t first = 0; first < producers.size(); ++first) {
    std::vector<BufferRange> written;
    for (const std::uint64_t block : blocks[first])
      std::ranges::move(producers[first].WrittenBy(block), std::back_inserter(written));
    for (std::size_t second = first + 1; second < producers.size(); ++second) {
      std::vector<BufferRange> read;
      std::ranges::copy_if(written, std::back_inserter(read), [&](const BufferRange& range) {
        return IsTakenBetween(execution, range.buffer, second, producers.size());
      });
      if (!producers[second].AddWritersOf(read, blocks[second])) return false;
    }
  }
  return true;
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

Result<std::optional<Runner::Needed>> Runner::RunNeeded(
    const Binder& bind, const cases::Probe& probe, const cases::Materialised& filled,
    std::uint64_t count, std::uint64_t room, std::uint64_t most_steps, std::uint64_t& steps) const {
  ASSAY_TRY(engine::Binding binding, bind(probe.poison));
  if (binding.execution.launches.size() == 1)
    return RunTogether(bind, probe, filled, count, room, most_steps, steps);
  ForgetFills(binding.execution);
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
  if (handed_on->producers.empty() && handed_on->StepsOfAll() > kLittle &&
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
  const auto run_with = [&](const ChosenBlocks* blocks,
                            Fills fills) -> Result<std::optional<Needed>> {
    ASSAY_TRY(engine::Binding binding, bind(poison));
    if (fills == Fills::kForgotten) ForgetFills(binding.execution, std::uint8_t{0});
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
  if (handed_on.StepsOfAll() <= kLittle) return run_with(nullptr, Fills::kKept);
  ASSAY_TRY(const engine::Binding whole, bind.WithoutValues(kGarbage));
  engine::Binding alone;
  ASSAY_TRY(const Report reads, RunAlone(bind, last, what, alone));
  steps += reads.counters.steps;
  if (reads.stop == Stop::kStepLimit) return std::nullopt;
  std::optional<std::vector<BufferRange>> missing = reads.missing;
  ChosenBlocks blocks(last);
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
    return run_with(&blocks, Fills::kKept);
  }
  // Nobody writes what is missing, so the run was what all blocks would have done; but for what starts as zeros.
  const auto as_of_all = [&]() -> Result<std::optional<Needed>> {
    const bool reads_zeros = std::ranges::any_of(*missing, [&](const BufferRange& range) {
      return whole.execution.buffers[range.buffer].fill == BufferFill::kZero;
    });
    return reads_zeros ? run_with(&blocks, Fills::kKept) : std::move(run);
  };
  // Those that write what is missing: by what was learned or, where that does not say, by their skeleton.
  const auto add_by_guess = [&] {
    return !handed_on.producers.empty() &&
           std::ranges::all_of(std::views::iota(std::size_t{0}, last),
                               [&](std::size_t i) {
                                 return handed_on.producers[i].AddWritersOf(*missing, blocks[i]);
                               }) &&
           AddOverwriters(whole.execution, handed_on.producers, blocks);
  };
  bool all_guessed = true;
  for (int round = 0; round < kMostRounds && missing && !missing->empty(); ++round) {
    const ChosenBlocks before = blocks;
    const bool guessed = add_by_guess();
    if (!guessed) blocks = before;
    all_guessed = all_guessed && guessed;
    if (blocks == before) {
      std::optional<std::vector<WrittenRange>> writers;
      const std::uint64_t most = guessed && undefined ? kStepsToAskAtLast : kStepsToAskOfAll;
      if (handed_on.skeleton_steps <= most) {
        ASSAY_TRY(writers, WritersOf(bind, *missing, most, steps));
      }
      if (writers) {
        for (const WrittenRange& range : *writers) blocks[range.launch].insert(range.block);
        if (writers->empty() && run) return as_of_all();
      }
      if (blocks == before && run) {
        // All that should have written it ran, each after those who read it.
        if (!guessed || !undefined) return std::nullopt;
        ASSAY_TRY(const bool nobody,
                  NobodyWrites(*missing, handed_on.producers, run->binding.execution, writes));
        if (!nobody) return std::nullopt;
        return as_of_all();
      }
      if (!writers) return std::nullopt;
    }
    std::uint64_t estimate = 0;
    for (std::size_t i = 0; i < last; ++i) estimate += blocks[i].size() * handed_on.block_steps[i];
    cost = reads.counters.steps + estimate;
    if (cost > what.most_steps) return std::nullopt;
    // Of a launch of which nothing is needed one block runs: no blocks at all would mean all of them.
    for (std::set<std::uint64_t>& of_launch : blocks) {
      if (of_launch.empty()) of_launch.insert(0);
    }
    ASSAY_TRY(run, run_with(&blocks, Fills::kForgotten));
    if (!run) return std::nullopt;
    missing = run->report.missing;
    if (!missing) return std::nullopt;
    undefined = UsesUndefined(run->report);
    if (!missing->empty()) continue;
    // Who writes in place what a block that runs has written is known by guesses alone.
    if (!all_guessed &&
        engine::MayFindOld(run->binding.execution, subject_.compiled->facts.get(), last))
      return std::nullopt;
    return run;
  }
  return std::nullopt;
}

}  // namespace assay::campaign
